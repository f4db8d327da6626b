"""Z-scores by the training rows: one scale for all rows, or one for each series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import AnomalyData, AnyData, ForecastingData
from sacm.errors import ArgumentError, DataError

Values = TypeVar("Values", np.ndarray, Tensor)
Data = TypeVar("Data", bound=AnyData)


@dataclass(frozen=True)
class ChannelScaler:
    """Per-channel mean and population standard deviation (1 where a channel is constant), `[C]`.

    Where every series has its own they are `[S, C]`: choose by `of_series` or `of_rows` first.
    A network that learnt from repaired rows is judged in the deviations of the original rows.
    """

    mean: np.ndarray
    std: np.ndarray
    reference: np.ndarray | None = None  # deviations in which errors are stated, if not `std`
    series: tuple[str, ...] = ()  # names of the S series

    @classmethod
    def fit(cls, parts: Iterable[np.ndarray], *, empty: bool = False) -> ChannelScaler:
        """Fit on the rows of `parts`, each `[n, C]`; NaN entries (padding, gaps) do not count.

        A channel without any value is refused, or left as it is with `empty`.
        """
        pieces = [part for part in parts if len(part)]
        if not pieces:
            raise DataError("There are no training rows to fit the scaler on.")

        def sum_over(statistic: Callable[[np.ndarray], Any]) -> Any:
            return np.sum([statistic(piece) for piece in pieces], axis=0, dtype=np.float64)

        count = sum_over(lambda x: np.isfinite(x).sum(axis=0))
        if not count.all() and not empty:
            place = int(np.flatnonzero(count == 0)[0])
            raise DataError(f"Channel {place} has no value in the training rows.")
        count = np.maximum(count, 1)
        mean = sum_over(lambda x: np.nansum(x, axis=0, dtype=np.float64)) / count
        squares = sum_over(lambda x: np.nansum((x - mean) ** 2, axis=0))
        std = np.sqrt(squares / count)
        # Rounding leaves a constant channel with a spread of about 1e-16 of its level, not 0; what
        # float32 cannot divide by counts as 0.
        constant = (std <= 1e-12 * np.abs(mean)) | (std < np.finfo(np.float32).tiny)
        return cls(mean.astype(np.float32), np.where(constant, 1.0, std).astype(np.float32))

    @property
    def units(self) -> np.ndarray:
        """Deviations in which errors are stated."""
        return self.std if self.reference is None else self.reference

    def of_series(self, names: Sequence[str]) -> ChannelScaler:
        """The scaler of windows `[B, L, C]` of these B series."""
        return self.of_places([self.series.index(name) for name in names] if self.series else [])

    def of_places(self, places: Any) -> ChannelScaler:
        """The scaler of windows `[B, L, C]` of the series at these B places; None for one scale."""
        return self if places is None else self.of_rows(np.asarray(places)[:, None])

    def of_rows(self, places: np.ndarray) -> ChannelScaler:
        """The scaler of rows `[T, C]` of the series at these T places."""
        return ChannelScaler(self.mean[places], self.std[places]) if self.series else self

    def transform(self, values: Values) -> Values:
        """Raw `[..., C]` to z-scores."""
        mean, std = self._like(values)
        return (values - mean) / std

    def inverse(self, values: Values) -> Values:
        """Z-scores `[..., C]` back to raw units."""
        mean, std = self._like(values)
        return values * std + mean

    def _like(self, values: Values) -> tuple[Any, Any]:
        """Mean and deviation as the kind of array, on the device, that `values` is."""
        if self.series:
            raise ArgumentError("Every series has its own scale: say of which series these are.")
        if values.shape[-1] != self.mean.shape[-1]:
            found, fitted = values.shape[-1], self.mean.shape[-1]
            raise ArgumentError(f"The scaler was fitted on {fitted} channels but got {found}.")
        if isinstance(values, Tensor):
            mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
            return mean.to(values.device), std.to(values.device)
        return self.mean, self.std

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain numbers and names, for a run's record."""
        arrays = {"mean": self.mean, "std": self.std, "reference": self.reference}
        record = {name: array.tolist() for name, array in arrays.items() if array is not None}
        return {**record, "series": list(self.series)} if self.series else record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ChannelScaler:
        """The scaler that `to_dict` described."""
        arrays = {k: np.array(v, np.float32) for k, v in record.items() if k != "series"}
        return cls(**arrays, series=tuple(record.get("series", ())))


FEWEST = 10  # training rows from which a series has a scale of its own


def fit_scaler(data: ForecastingData, pieces: Sequence[range] | None = None) -> ChannelScaler:
    """Fit on training rows: of all series together, or of each by itself if the data ask for it."""
    pieces = data.ranges("train") if pieces is None else pieces
    if data.scaling != "series":
        return fit_rows(data, pieces)
    own = data.by_series(pieces)
    enough = {name: rows for name, rows in own.items() if sum(map(len, rows)) >= FEWEST} or own
    none = np.empty((0, data.channels), np.float32)
    return _add_series(ChannelScaler(none, none), data, enough)


def _add_series(
    scaler: ChannelScaler, data: ForecastingData, series: dict[str, list[range]]
) -> ChannelScaler:
    """The scaler with more series, each scaled by these rows of its own."""
    fitted = [fit_rows(data, rows, empty=True) for rows in series.values()]
    mean, std = (np.stack([getattr(each, name) for each in fitted]) for name in ("mean", "std"))
    reference = scaler.reference
    return ChannelScaler(
        np.concatenate([scaler.mean, mean]),
        np.concatenate([scaler.std, std]),
        None if reference is None else np.concatenate([reference, std]),
        (*scaler.series, *series),
    )


def cover_series(
    scaler: ChannelScaler, data: ForecastingData, window: int, *, least: int = 1
) -> ChannelScaler:
    """The same scaler, with the series of `data` that it does not know.

    Such a series is scaled by its own training rows, or, if it has none, by those of its first
    window, and not by what is forecast. One without `least` rows, so without windows, is left out.
    """
    longest = sum if data.reach_back else max
    train = data.by_series(data.ranges("train"))
    segments = data.by_series(range(each.start, each.stop) for each in data.segments)
    added = {
        name: train.get(name) or [segments[name][0][:window]]
        for name in new_series(scaler, data)
        if longest(map(len, segments[name])) >= least
    }
    return _add_series(scaler, data, added) if added else scaler


def new_series(scaler: ChannelScaler, data: ForecastingData) -> list[str]:
    """The series of `data` that a scaler of several does not know."""
    names = data.last_rows(1) if scaler.series else ()
    return [name for name in names if name not in scaler.series]


def places_of_rows(scaler: ChannelScaler, data: ForecastingData) -> np.ndarray:
    """The place of every row's series in the scaler, `[T]`; -1 where it has none."""
    places = np.full(len(data.values), -1)
    known = {name: place for place, name in enumerate(scaler.series)}
    for name, start, stop in data.segments:
        places[start:stop] = known.get(name, -1)
    return places


def scale_training_rows(data: ForecastingData, pieces: Sequence[range] | None = None) -> np.ndarray:
    """The training rows `[n, C]`, scaled by themselves, or by some `pieces` of them."""
    scaler = cover_series(fit_scaler(data, pieces), data, 1)
    stop = data.splits.train.stop
    by_row = scaler.of_rows(places_of_rows(scaler, data)[:stop])
    return by_row.transform(np.asarray(data.values[:stop]))


def fit_rows(
    data: ForecastingData, pieces: Sequence[range], *, empty: bool = False
) -> ChannelScaler:
    """One scaler for all these rows; what was not measured does not count."""
    parts = [data.values[rows.start : rows.stop] for rows in pieces]
    if data.observed is not None:
        measured = [data.observed[rows.start : rows.stop] > 0 for rows in pieces]
        unknown = ~np.any([each.any(axis=0) for each in measured], axis=0)  # [C] nothing measured
        parts = [np.where(m | unknown, p, np.nan) for p, m in zip(parts, measured, strict=True)]
    return ChannelScaler.fit(parts, empty=empty)


def fill_gaps(values: np.ndarray, pieces: Iterable[range] | None = None) -> np.ndarray:
    """Interpolate missing values linearly, the default of strategies that repair nothing.

    Ends are extended. A column without any value becomes 0.

    Args:
        values: `[T, C]`, NaN where nothing was measured.
        pieces: Ranges of rows in order of time; nothing is filled from a later one, unless there is
            no value before it. Default: one.

    Example:
        >>> fill_gaps(np.array([[1.0], [np.nan], [3.0]])).tolist()
        [[1.0], [2.0], [3.0]]
    """
    return _fill_pieces(values, [list(pieces or [range(len(values))])])


def _fill_pieces(values: np.ndarray, series: list[list[range]]) -> np.ndarray:
    """Values filled series by series, each piece by piece."""
    if not np.isnan(values).any():
        return values
    filled = np.array(values)  # never into the user's array
    for column, pieces in product(filled.T, series):
        parts = [column[rows.start : rows.stop] for rows in pieces if len(rows)]
        measured = [part[~np.isnan(part)] for part in parts]
        before = next((held[0] for held in measured if len(held)), column.dtype.type(0))
        for part in parts:
            missing, known = np.flatnonzero(np.isnan(part)), np.flatnonzero(~np.isnan(part))
            part[missing] = np.interp(missing, known, part[known]) if len(known) else before
            before = part[-1]
    return filled


def fill_data(data: Data) -> tuple[Data, str | None]:
    """Interpolate the gaps of a data set, and mark them so that they count in no error."""
    filled: Any = data
    if isinstance(data, ForecastingData):
        filled, count = _fill_series(data)
        size, unscored = data.values.size, ", and targets do not count"
    elif isinstance(data, AnomalyData):
        count = int(np.isnan(data.train).sum() + np.isnan(data.test).sum())
        size, unscored = data.train.size + data.test.size, ""
        if count:  # nothing is filled from the rows that validate, or across segments
            train = fill_gaps(data.train, chain(*data.training_ranges()))
            test = fill_gaps(data.test, [each.test for each in data.segments])
            filled = replace(data, train=train, test=test)
    if filled is data:  # gaps inside cases are filled when they are read
        return data, None
    judged = getattr(data, "observed", None) is not None
    state = "were neither measured nor repaired" if judged else "were not measured"
    note = (
        f"{count:,} of {size:,} values ({count / size:.1%}) {state}: inputs are interpolated "
        f"there{unscored}."
    )
    return filled, note


def _fill_series(data: ForecastingData) -> tuple[ForecastingData, int]:
    """A series with finite values and covariates; nothing is filled from a later split."""
    parts = [rows for split in ("train", "val", "test") for rows in data.ranges(split)]
    if sum(map(len, parts)) < len(data.values):  # whole segments where no split holds them
        parts = [range(each.start, each.stop) for each in data.segments]
    pieces = list(data.by_series(parts).values())
    changes: dict[str, Any] = {}
    missing = np.isnan(data.values) | np.isnan(data.clean)
    if count := int(missing.sum()):
        changes = {"values": _fill_pieces(data.values, pieces)}
        if data.targets is not None:
            changes["targets"] = _fill_pieces(data.targets, pieces)
        changes["interpolated"] = np.isnan(data.values)
        changes["observed"] = (
            ~missing if data.observed is None else np.where(missing, 0, data.observed)
        )
    if data.covariates is not None and (gaps := int(np.isnan(data.covariates).sum())):
        changes["covariates"] = _fill_pieces(data.covariates, pieces)
        count += gaps
    return (replace(data, **changes) if changes else data), count


def fill_cases(X: np.ndarray, lengths: np.ndarray, where: str) -> int:
    """Interpolate NaN inside each case of `X` `[N, C, L]` in place; how many there were."""
    inside = np.arange(X.shape[2]) < lengths[:, None, None]  # [N, 1, L]
    gaps = np.isnan(X) & inside
    for case, channel in np.argwhere(gaps.any(axis=2)):
        part = X[case, channel, : lengths[case]]
        if np.isnan(part).all():
            raise DataError(f"{where}: channel {channel} of case {case + 1} has no value.")
        part[:] = fill_gaps(part[:, None])[:, 0]
    return int(gaps.sum())
