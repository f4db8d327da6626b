"""One scaler for all rows of a data set, or one for each of its series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sacm.data.datasets import ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.data.splits import segment_ranges

FEWEST = 10  # training rows of a series that say what its level and its spread are


def fit_scaler(data: ForecastingData, pieces: Sequence[range] | None = None) -> ChannelScaler:
    """Fit on training rows: of all series together, or of each by itself if the data ask for it.

    Args:
        data: The series.
        pieces: Rows to fit on, none of them across two series. Default: the training rows.

    Returns:
        The scaler. A series with a handful of training rows has no place in one of several: see
        `cover_series`.
    """
    pieces = data.ranges("train") if pieces is None else pieces
    if data.scaling != "series":
        return fit_rows(data, pieces)
    names = [segment.name for segment in data.segments]
    own: dict[str, list[range]] = {}
    for rows in pieces:
        own.setdefault(names[find_segments(data, np.array([rows.start]))[0]], []).append(rows)
    enough = {name: rows for name, rows in own.items() if sum(map(len, rows)) >= FEWEST} or own
    fitted = [fit_rows(data, rows) for rows in enough.values()]
    mean, std = (np.stack([getattr(each, name) for each in fitted]) for name in ("mean", "std"))
    return ChannelScaler(mean, std, series=tuple(enough))


def cover_series(
    scaler: ChannelScaler, data: ForecastingData, window: int, *, least: int = 1
) -> ChannelScaler:
    """The same scaler, with the series of `data` that it does not know.

    Such a series is scaled by its own training rows, or, if it has none, by the rows of its first
    window: nothing that is forecast has a part in it. One without a piece of `least` rows is left
    out, for no window is cut from it.
    """
    longest = dict.fromkeys(new_series(scaler, data), 0)
    for name, start, stop in data.segments:
        if name in longest:
            longest[name] = max(longest[name], stop - start)
    unknown = [name for name, rows in longest.items() if rows >= least]
    if not unknown:
        return scaler
    added = [fit_rows(data, _rows_before(data, name, window)) for name in unknown]
    mean, std = ([getattr(each, name) for each in added] for name in ("mean", "std"))
    reference = scaler.reference
    return replace(
        scaler,
        mean=np.concatenate([scaler.mean, mean]),
        std=np.concatenate([scaler.std, std]),
        reference=None if reference is None else np.concatenate([reference, std]),
        series=(*scaler.series, *unknown),
    )


def new_series(scaler: ChannelScaler, data: ForecastingData) -> list[str]:
    """The series of `data` that a scaler of several does not know."""
    if not scaler.series:
        return []
    return [name for name in data.last_rows(1) if name not in scaler.series]


def places_of_rows(scaler: ChannelScaler, data: ForecastingData) -> np.ndarray:
    """The place of every row's series in the scaler, `[T]`; -1 for rows of no series."""
    places = np.full(len(data.values), -1)
    known = {name: place for place, name in enumerate(scaler.series)}
    for name, start, stop in data.segments:
        places[start:stop] = known.get(name, -1)
    return places


def scale_training_rows(
    data: ForecastingData,
    pieces: Sequence[range] | None = None,
    *,
    values: np.ndarray | None = None,
) -> np.ndarray:
    """The training rows `[n, C]`, scaled by themselves, or by some `pieces` of them.

    With `values`, other values of the same rows are scaled alike.
    """
    scaler = cover_series(fit_scaler(data, pieces), data, 1)
    stop = data.splits.train.stop
    by_row = scaler.of_rows(places_of_rows(scaler, data)[:stop])
    return by_row.transform(np.asarray((data.values if values is None else values)[:stop]))


def fit_rows(data: ForecastingData, pieces: Sequence[range]) -> ChannelScaler:
    """One scaler for all these rows."""
    return ChannelScaler.fit(data.values[rows.start : rows.stop] for rows in pieces)


def find_segments(data: ForecastingData, rows: np.ndarray) -> np.ndarray:
    """Which segment each of these rows lies in."""
    begins = np.array([segment.start for segment in data.segments])
    return np.searchsorted(begins, rows, side="right") - 1


def _rows_before(data: ForecastingData, name: str, window: int) -> list[range]:
    """The training rows of a series, or those of its first window."""
    own = [range(each.start, each.stop) for each in data.segments if each.name == name]
    train = [rows for rows in segment_ranges(own, data.splits.train) if len(rows)]
    return train or [own[0][:window]]
