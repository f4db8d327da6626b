"""From a data set to the windows of its three splits, scaled by the training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sacm.data.batches import ForecastWindows, LabelledWindows, TelemetryWindows, window_starts
from sacm.data.covariates import stamp_features
from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData, split_cases
from sacm.data.scaling import ChannelScaler, cover_series, fit_scaler, places_of_rows
from sacm.errors import ArgumentError, DataError

Windowed = TypeVar("Windowed", ForecastWindows, LabelledWindows, TelemetryWindows)


class SplitWindows(NamedTuple, Generic[Windowed]):
    """The windows of one data set."""

    train: Windowed
    val: Windowed
    test: Windowed

    @property
    def scaler(self) -> ChannelScaler:
        return self.train.scaler


def forecasting_windows(
    data: ForecastingData,
    *,
    input_len: int,
    horizon: int,
    stamps: bool = False,
    scaler: ChannelScaler | None = None,
    stride: int = 1,
    validation_stride: int = 1,
    shorter: tuple[int, int] | None = None,
) -> SplitWindows[ForecastWindows]:
    """Cut windows of `input_len + horizon` steps, the targets of each inside one split.

    Inputs lie in the same split, too, unless the data say `reach_back`: then they may begin in the
    rows of the series before it. A split without rows has no windows.

    Args:
        data: The series.
        input_len: Steps L that a network sees.
        horizon: Steps H that follow.
        stamps: Whether batches hold calendar features.
        scaler: Overrides the one fitted on the training rows.
        stride: Rows between two training windows; test windows begin at every row.
        validation_stride: Rows between two validation windows.
        shorter: Input steps of training and validation windows, where they differ.

    Example:
        >>> from sacm.data import forecasting_data
        >>> data = forecasting_data(np.arange(200.0))
        >>> windows = forecasting_windows(data, input_len=12, horizon=4)
        >>> len(windows.train), windows.train.batch([0, 1]).x.shape
        (125, torch.Size([2, 12, 1]))
    """
    if min(input_len, horizon, stride, validation_stride) < 1:
        raise ArgumentError("input_len, horizon and strides must be at least 1.")
    seen = shorter or (input_len, input_len)
    fitted = cover_series(scaler or fit_scaler(data), data, input_len, least=min(seen) + horizon)
    order, _ = order_in_time(data)
    places = places_of_rows(fitted, data)[order]
    by_row = fitted.of_rows(places)
    times = data.timestamps if stamps else None
    if stamps and times is None:
        raise ArgumentError(f"{data.name} has no timestamps, so it has no calendar features.")
    rows = {
        "inputs": data.values,
        "targets": data.targets,
        "stamps": None if times is None else stamp_features(times),
        "observed": data.counted,
        "interpolated": data.interpolated,
        "covariates": data.covariates,
    }
    arrays: dict[str, Any] = {k: v[order] for k, v in rows.items() if v is not None}
    arrays |= {k: by_row.transform(arrays[k]) for k in ("inputs", "targets") if k in arrays}

    def windows(split: str, stride: int, input_len: int) -> ForecastWindows:
        least = input_len + horizon
        ranges = window_ranges(data, split, input_len)
        starts = window_starts(ranges, least, stride=stride)
        if not len(starts) and len(data.splits[split]):
            raise DataError(
                f"{data.name}: windows of the {split} split have {max(map(len, ranges))} rows to "
                f"lie in but need {input_len} + {horizon} = {least}: use a shorter --input-len or "
                "--horizon, other shares with --split, or more data."
            )
        return ForecastWindows(
            starts=starts,
            input_len=input_len,
            horizon=horizon,
            scaler=fitted,
            **arrays,
            past=len(data.past),
            series=places if fitted.series else None,
        )

    return SplitWindows(
        windows("train", stride, seen[0]),
        windows("val", validation_stride, seen[1]),
        windows("test", 1, input_len),
    )


def order_in_time(data: ForecastingData) -> tuple[np.ndarray | slice, list[range]]:
    """The order of rows in which windows are cut, and the ranges of it that none crosses.

    Series by series in order of time if windows reach back, else as they are, by segment.
    """
    if not data.reach_back:
        return slice(None), [range(each.start, each.stop) for each in data.segments]
    series = list(data.last_rows(len(data.values)).values())
    ends = np.cumsum([0, *map(len, series)]).tolist()
    order = slice(None) if len(series) == 1 else np.concatenate(series)  # no copy for one
    return order, [range(*pair) for pair in pairwise(ends)]


def window_ranges(data: ForecastingData, split: str, input_len: int) -> tuple[range, ...]:
    """The rows that windows of a split may lie in, in the order of `order_in_time`.

    With `reach_back` these begin up to `input_len` rows before the split, inside the series: the
    rows before a validation or test row are known when it is forecast.
    """
    if not data.reach_back:
        return data.ranges(split)
    rows, back = data.splits[split], 0 if split == "train" else input_len
    ranges, begin = [], 0
    for series in data.last_rows(len(data.values)).values():
        inside = begin + np.flatnonzero((series >= rows.start) & (series < rows.stop))
        if len(inside):
            ranges.append(range(max(begin, int(inside[0]) - back), int(inside[-1]) + 1))
        begin += len(series)
    return tuple(ranges)


def classification_windows(
    data: ClassificationData, *, scaler: ChannelScaler | None = None
) -> SplitWindows[LabelledWindows]:
    """Cases for training, validation (a fifth of the training cases) and testing."""
    train, val = split_cases(data.y_train, data.subjects_train)
    columns = data.X_train[train].transpose(0, 2, 1).reshape(-1, data.channels)
    fitted = scaler or ChannelScaler.fit([columns])
    known = (data.X_train, data.lengths_train, data.encode(data.y_train))
    tested = (data.X_test, data.lengths_test, data.encode(data.y_test))
    return SplitWindows(
        LabelledWindows(*known, starts=train, scaler=fitted),
        LabelledWindows(*known, starts=val, scaler=fitted),
        LabelledWindows(*tested, starts=np.arange(len(data.X_test)), scaler=fitted),
    )


def anomaly_windows(
    data: AnomalyData,
    *,
    length: int = 100,
    stride: int = 1,
    scaler: ChannelScaler | None = None,
) -> SplitWindows[TelemetryWindows]:
    """Windows of `length` steps that never cross a machine or channel border.

    The last fifth of the training rows is for validation. Validation and test windows lie side by
    side at most, and the last one ends with its segment, so that every step is scored. `scaler`
    overrides the one fitted on the training rows.
    """
    if min(length, stride) < 1:
        raise ArgumentError("length and stride must be at least 1.")
    train, val = data.training_ranges()
    test = [segment.test for segment in data.segments]
    fitted = scaler or ChannelScaler.fit(data.train[rows.start : rows.stop] for rows in train)
    short = {f"test segment {each.name}": len(each.test) for each in data.segments if each.test}
    for what, count in {"the longest training segment": max(map(len, train)), **short}.items():
        if count < length:
            raise DataError(
                f"{data.name}: {what} has {count} rows, fewer than a window of {length}: use a "
                "shorter window."
            )
    rows, test_rows = fitted.transform(data.train), fitted.transform(data.test)

    def windows(series: np.ndarray, ranges: Sequence[range], cover: bool) -> TelemetryWindows:
        every = min(stride, length) if cover else stride
        starts = window_starts(ranges, length, stride=every, cover=cover)
        return TelemetryWindows(series, length, starts=starts, scaler=fitted)

    return SplitWindows(
        windows(rows, train, False), windows(rows, val, True), windows(test_rows, test, True)
    )
