"""Missing values: a reader marks them, and whoever trains or forecasts decides what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ForecastingData, chunks, hold_out_tail
from sacm.errors import DataError

Data = TypeVar("Data", bound=AnyData)


def fill_gaps(values: np.ndarray, pieces: Iterable[range] | None = None) -> np.ndarray:
    """Interpolate missing values linearly, the default of strategies that repair nothing.

    Args:
        values: `[T, C]`, NaN where nothing was measured.
        pieces: Ranges of rows in order of time; nothing is filled from a later one. Default: one.

    Returns:
        Values `[T, C]` without NaN. Ends are extended; a piece without any value repeats the last
        one before it, or the first one after it. A column without any value becomes 0.

    Example:
        >>> fill_gaps(np.array([[1.0], [np.nan], [3.0]])).tolist()
        [[1.0], [2.0], [3.0]]
    """
    gaps = columns_with_gaps(values)
    if not len(gaps):
        return values
    pieces = [rows for rows in pieces or [range(len(values))] if len(rows)]
    # Never into the user's array; a file mapped copy-on-write may be larger than memory.
    filled = values if getattr(values, "mode", None) == "c" else values.copy()
    for column in (filled[:, place] for place in gaps):
        measured = np.flatnonzero(~np.isnan(column))
        before = column[measured[0]] if len(measured) else column.dtype.type(0)
        for rows in pieces:
            part = column[rows.start : rows.stop]
            known = np.flatnonzero(~np.isnan(part))
            missing = np.flatnonzero(np.isnan(part))
            part[missing] = np.interp(missing, known, part[known]) if len(known) else before
            before = part[-1]
    return filled


def columns_with_gaps(values: np.ndarray) -> np.ndarray:
    """Positions of the columns that have a NaN, found piece by piece."""
    found = np.zeros(values.shape[1], dtype=bool)
    for piece in chunks(values):
        found |= np.isnan(piece).any(axis=0)
    return np.flatnonzero(found)


def fill_data(data: Data) -> tuple[Data, str | None]:
    """Interpolate the gaps of a data set, and mark them so that they count in no error.

    Args:
        data: One of the three data sets, with NaN where nothing was measured.

    Returns:
        The data with finite values (`observed` is False where a value of a series was missing),
        and a sentence for the user; the same data and None if nothing is missing.
    """
    filled: AnyData
    if isinstance(data, ForecastingData):
        filled, count, size = _fill_series(data)
    elif isinstance(data, AnomalyData):
        filled, count, size = _fill_telemetry(data)
    else:
        return data, None  # gaps inside cases are filled when they are read
    if filled is data:
        return data, None
    unscored = ", and targets do not count" if isinstance(data, ForecastingData) else ""
    note = (
        f"{count:,} of {size:,} values ({count / size:.1%}) were not measured: inputs are "
        f"interpolated there{unscored}."
    )
    return filled, note  # type: ignore[return-value]


def _fill_series(data: ForecastingData) -> tuple[ForecastingData, int, int]:
    """A series with finite values and covariates; nothing is filled from a later split."""
    pieces = _pieces_by_series(data)
    changes: dict[str, np.ndarray] = {}
    count = 0
    missing = _missing(data)
    if missing is not None:
        count = int(missing.sum())
        changes["values"] = _fill_each(data.values, pieces)
        changes["interpolated"] = np.isnan(data.values)
        if data.targets is not None:
            changes["targets"] = _fill_each(data.targets, pieces)
        changes["observed"] = (
            ~missing if data.observed is None else np.where(missing, 0, data.observed)
        )
    if data.covariates is not None and len(columns_with_gaps(data.covariates)):
        changes["covariates"] = _fill_each(data.covariates, pieces)
        count += int(np.isnan(data.covariates).sum())
    return (replace(data, **changes) if changes else data), count, data.values.size  # type: ignore[arg-type]


def _missing(data: ForecastingData) -> np.ndarray | None:
    """Where a value or a target was not measured, `[T, C]`; None if nothing is missing."""
    arrays = [data.values] if data.targets is None else [data.values, data.targets]
    if not any(len(columns_with_gaps(array)) for array in arrays):
        return None
    found: np.ndarray = np.logical_or.reduce([np.isnan(array) for array in arrays])
    return found


def _pieces_by_series(data: ForecastingData) -> list[list[range]]:
    """The rows of every series, split by split; whole segments where no split holds them."""
    pieces: dict[str, list[range]] = {}
    covered = sum(map(len, data.splits))
    if covered < len(data.values):
        for name, start, stop in data.segments:
            pieces.setdefault(name, []).append(range(start, stop))
        return list(pieces.values())
    for split in data.splits:
        for name, start, stop in data.segments:
            rows = range(max(start, split.start), min(stop, split.stop))
            if len(rows):
                pieces.setdefault(name, []).append(rows)
    return list(pieces.values())


def _fill_each(values: np.ndarray, pieces: list[list[range]]) -> np.ndarray:
    """Values filled series by series."""
    if len(pieces) == 1:
        return fill_gaps(values, pieces[0])
    filled = values.copy()
    for own in pieces:
        rows = np.concatenate([np.arange(part.start, part.stop) for part in own])
        ends = np.cumsum([0, *map(len, own)])
        parts = [range(int(a), int(b)) for a, b in pairwise(ends)]
        filled[rows] = fill_gaps(values[rows], parts)
    return filled


def _fill_telemetry(data: AnomalyData) -> tuple[AnomalyData, int, int]:
    """Telemetry without gaps; nothing is filled from the rows that validate, or across segments."""
    count = int(np.isnan(data.train).sum() + np.isnan(data.test).sum())
    if not count:
        return data, 0, 1
    held = hold_out_tail(len(data.train))
    train = [
        range(max(own.start, part.start), min(own.stop, part.stop))
        for own in (segment.train for segment in data.segments)
        for part in held
    ]
    filled = replace(
        data,
        train=fill_gaps(data.train, train),
        test=fill_gaps(data.test, [segment.test for segment in data.segments]),
    )
    return filled, count, data.train.size + data.test.size


def fill_cases(X: np.ndarray, lengths: np.ndarray, where: str) -> int:
    """Interpolate NaN inside each case of `X` `[N, C, L]` in place; how many there were.

    Raises:
        DataError: A channel of a case has no value.
    """
    inside = np.arange(X.shape[2]) < lengths[:, None, None]  # [N, 1, L]
    gaps = np.isnan(X) & inside
    for case, channel in np.argwhere(gaps.any(axis=2)):
        part = X[case, channel, : lengths[case]]
        if np.isnan(part).all():
            raise DataError(f"{where}: channel {channel} of case {case + 1} has no value.")
        part[:] = fill_gaps(part[:, None])[:, 0]
    return int(gaps.sum())
