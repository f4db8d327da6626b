"""A user's own series, from a file, an array or a frame, as `ForecastingData`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sacm.data.covariates import ROLES, Roles, roles_of
from sacm.data.datasets import DEFAULT_RATIOS, ForecastingData, Segment, Splits, split_by_ratio
from sacm.data.read import Table, read_table
from sacm.errors import DataError, list_names
from sacm.settings import ReadOptions

FEWEST_ROWS = 3
ALL_ROWS = (1.0, 0.0, 0.0)  # shares that put every row in the first split


def forecasting_data(source: Any, *, name: str | None = None, **options: Any) -> ForecastingData:
    """Read a series to forecast, and split it; NaN stays where nothing was measured.

    The series of a long table become channels side by side if they share all times.

    Args:
        source: What `sacm.data.read_table` reads.
        name: A short name. Default: that of the file, or "data".
        options: How to read it, such as `time="day"`; see `sacm.settings.ReadOptions`. `past` and
            `future` name covariates.

    Example:
        >>> data = forecasting_data(np.arange(100.0))
        >>> data.values.shape, [len(rows) for rows in data.splits]
        ((100, 1), [70, 10, 20])
    """
    roles = roles_of({role: options.pop(role, ()) for role in ROLES})
    chosen = ReadOptions.of(options)
    table = read_table(source, chosen, name=name, also=(*roles["past"], *roles["future"]))
    return series_data(table, chosen, roles=roles)


def series_data(
    table: Table, options: ReadOptions, *, roles: Roles, join: bool = True
) -> ForecastingData:
    """Split what was read; covariates are set apart, and gaps stay.

    With `join`, series that share all times become channels side by side.
    """
    ratios = tuple(options.split or DEFAULT_RATIOS)
    target = tuple(options.target or ())
    beside = (*roles["past"], *roles["future"])
    if table.categories and not target:
        inputs = {*table.categories, *beside}
        target = tuple(each for each in table.names if each not in inputs)
    lengths = [stop - start for _, start, stop in table.series]
    if max(lengths) < FEWEST_ROWS and ratios != ALL_ROWS:
        raise DataError(f"{table.where} has {max(lengths)} rows: too few to train and test on.")
    covariates, ahead, understood = None, None, list(table.understood)
    if beside:
        table, covariates, ahead = separate(table, roles, target)
        understood += [f"{k} covariates (--{k}): {', '.join(v)}" for k, v in roles.items() if v]
    if ahead:
        rows = max(map(len, ahead.values()))
        understood.append(f"rows beyond the last value to forecast from: {rows:,}")
    values, times, columns = table.values, table.times, table.names
    segments = table.series if table.form.long else ()
    splits = [split_by_ratio(stop - start, ratios) for _, start, stop in table.series]
    borders = splits[0]
    if len(table.series) > 1 and join and not beside and _share_times(table):
        values = np.stack([values[start:stop, 0] for _, start, stop in table.series], axis=1)
        times = None if times is None else times[: len(values)]
        columns, segments = tuple(name for name, *_ in table.series), ()
    elif len(table.series) > 1:
        order, segments, borders = split_major(table.series, splits)
        values = values[order]
        times, covariates = (None if each is None else each[order] for each in (times, covariates))
    several = len({each.name for each in segments}) > 1
    data = ForecastingData(
        name=table.name,
        values=np.ascontiguousarray(values, dtype=np.float32),
        columns=columns,
        splits=borders,
        timestamps=times,
        segments=segments,
        covariates=None if covariates is None else covariates.astype(np.float32),
        frequency=table.step,
        notes=table.notes if several else (*table.notes, *_late_notes(values, columns, times)),
        understood=tuple(understood),
        reach_back=True,
        ahead=ahead,
        form=replace(table.form, rows=len(values)),
        past=roles["past"],
        future=roles["future"],
        scaling="series" if several and options.scaling != "shared" else None,
    )
    return _check_channels(data, target)


def _share_times(table: Table) -> bool:
    """Whether all series have one channel and the same times."""
    times = np.concatenate([np.arange(stop - start) for _, start, stop in table.series])
    times = times if table.times is None else table.times
    parts = [times[start:stop] for _, start, stop in table.series]
    return len(table.names) == 1 and all(np.array_equal(part, parts[0]) for part in parts)


def _check_channels(data: ForecastingData, target: Sequence[str]) -> ForecastingData:
    """Choose the channels to forecast; leave out those without a value in the training rows."""
    train, notes = data.values[: data.splits.train.stop], list(data.notes)
    flat, empty = np.zeros((2, data.channels), dtype=bool)
    if len(train):
        flat = np.fmin.reduce(train, axis=0) == np.fmax.reduce(train, axis=0)
        empty = np.isnan(train).all(axis=0)
    if flat.any():
        named = list_names([repr(data.columns[place]) for place in np.flatnonzero(flat)])
        notes.append(f"Constant in the training rows, so there is nothing to learn: {named}.")
    if empty.any():
        names = [data.columns[place] for place in np.flatnonzero(empty)]
        if empty.all() or set(names) & set(target):
            raise DataError(
                f"{data.name}: {list_names(names)} has no value in the {len(train):,} training "
                "rows: other shares with --split, or leave it out with --ignore."
            )
        notes.append(f"Left out, no value in the training rows: {list_names(names)}.")
        data = data.take(np.flatnonzero(~empty).tolist())
    for name in target:
        if name not in data.columns:
            raise DataError(
                f"{data.name}: target {name!r} is no channel; channels are "
                f"{list_names(data.columns, 8)}."
            )
    if set(target) in (set(), set(data.columns)):  # all of them
        return replace(data, notes=tuple(notes))
    line = f"target: {list_names(target)}; the other channels are inputs only"
    understood = (*data.understood, line)
    return replace(data, notes=tuple(notes), target=tuple(target), understood=understood)


def split_major(
    series: Sequence[Segment], splits: Sequence[Splits]
) -> tuple[np.ndarray, tuple[Segment, ...], Splits]:
    """Order of rows by split, then by series, and the borders between segments."""
    order: list[np.ndarray] = []
    segments: list[Segment] = []
    ends = [0]
    for split in ("train", "val", "test"):
        ends.append(ends[-1])
        for (name, start, _), own in zip(series, splits, strict=True):
            if rows := own[split]:
                order.append(np.arange(rows.start, rows.stop) + start)
                segments.append(Segment(name, ends[-1], ends[-1] + len(rows)))
                ends[-1] += len(rows)
    borders = Splits(*(range(start, stop) for start, stop in pairwise(ends)))
    return np.concatenate(order), tuple(segments), borders


def _late_notes(values: np.ndarray, names: Sequence[str], times: np.ndarray | None) -> list[str]:
    """Name columns of a single series that begin late or end early, with their dates."""
    found: dict[str, list[str]] = {"begin late": [], "end early": []}
    for name, column in zip(names, np.isnan(values).T, strict=True):
        measured = np.flatnonzero(~column)
        if not len(measured):
            continue
        for what, row, border in zip(found, measured[[0, -1]], (0, len(values) - 1), strict=True):
            if row != border:
                at = f"row {row + 1}" if times is None else str(times[row]).split("T00:00:00")[0]
                found[what].append(f"{name!r} at {at}")
    return [f"Columns that {what}: {list_names(each)}." for what, each in found.items() if each]


def separate(
    table: Table, roles: Roles, target: Sequence[str]
) -> tuple[Table, np.ndarray, dict[str, np.ndarray] | None]:
    """Set covariates apart from channels; last rows that hold nothing else lie ahead."""
    if table.columns is None:
        raise DataError(f"{table.where} is an array, whose columns have no names: use a frame.")
    places = [table.columns.index(name) for names in roles.values() for name in names]
    rest = [place for place in range(len(table.columns)) if place not in places]
    if not rest:
        raise DataError(f"{table.where}: every column is a covariate, so none is left to forecast.")
    aim = [place for place in rest if not target or table.columns[place] in target]
    series: list[Segment] = []
    ahead: dict[str, np.ndarray] = {}
    counters, kept = dict(table.form.counters), np.ones(len(table.values), dtype=bool)
    for name, start, stop in table.series:
        measured = np.flatnonzero(~np.isnan(table.values[start:stop, aim]).all(axis=1))
        last = start + int(measured[-1]) + 1 if roles["future"] and len(measured) else stop
        if last < stop:
            ahead[name] = table.values[last:stop, places].astype(np.float32)
            ahead[name][:, : len(roles["past"])] = 0
            key = name if name in counters else ""
            if key in counters:
                end, step = counters[key]
                counters[key] = (end - step * (stop - last), step)
        kept[last:stop] = False
        begin = series[-1].stop if series else 0
        series.append(Segment(name, begin, begin + last - start))
    channels = tuple(table.columns[place] for place in rest)
    form = replace(table.form, counters=counters)
    cut = replace(
        table,
        values=table.values[kept][:, rest],
        columns=channels,
        times=None if table.times is None else table.times[kept],
        order=table.order[kept],
        series=tuple(series),
        form=replace(form, channels=channels) if form.long else form,
    )
    return cut, table.values[kept][:, places], ahead or None
