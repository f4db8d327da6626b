"""A user's own series, from a file, an array or a frame, as `ForecastingData`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sacm.data.columns import some
from sacm.data.covariates import ROLES, CovariatePlan
from sacm.data.datasets import DEFAULT_RATIOS, ForecastingData, Segment, Splits, split_by_ratio
from sacm.data.read import Table, read_table
from sacm.data.scaling import columns_with_gaps
from sacm.errors import ArgumentError, DataError
from sacm.settings import ReadOptions

FEWEST_ROWS = 3
ALL_ROWS = (1.0, 0.0, 0.0)  # shares that put every row in the first split
NO_COVARIATES = CovariatePlan()
FEWEST_FLOAT_STEPS = 16  # of float32 that a column should span
Layout = Literal["auto", "channels", "series"]


def forecasting_data(
    source: Any,
    options: ReadOptions | Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    layout: Layout = "auto",
    **named: Any,
) -> ForecastingData:
    """Read a series to forecast, and split it.

    Args:
        source: What `sacm.data.read_table` reads, or a `Table`.
        options: How to read it; see `sacm.settings.ReadOptions`.
        name: A short name. Default: that of the file, or "data".
        layout: What the series of a long table become: "channels" of one, "series" of one channel
            each, or "auto": channels if they share all times.
        named: Options by name, such as `time="day"`, and the covariates `past`, `future`, `static`.

    Returns:
        The data, with NaN where nothing was measured; `notes` says what was guessed.

    Raises:
        DataError: The data cannot be read; the sentence says where and what to do.
        ArgumentError: An option is wrong.

    Example:
        >>> data = forecasting_data(np.arange(100.0), name="counter")
        >>> data.values.shape, [len(rows) for rows in data.splits]
        ((100, 1), [70, 10, 20])
    """
    given = options.reading() if isinstance(options, ReadOptions) else dict(options or {})
    given |= {key: value for key, value in named.items() if value is not None}
    plan = CovariatePlan.of({role: given.pop(role, ()) for role in ROLES})
    chosen = ReadOptions.of(given)
    table = source
    if not isinstance(source, Table):
        table = read_table(source, chosen, name=name, also=plan.columns)
    return series_data(table, chosen, plan=plan, layout=layout)


def series_data(
    table: Table,
    options: ReadOptions,
    *,
    plan: CovariatePlan = NO_COVARIATES,
    layout: Layout = "auto",
) -> ForecastingData:
    """Split what was read; covariates are set apart, and gaps stay."""
    ratios = tuple(options.split or DEFAULT_RATIOS)
    target = tuple(options.target or ())
    if table.categories and not target:
        target = tuple(
            each for each in table.names if each not in (*table.categories, *plan.columns)
        )
    lengths = [stop - start for _, start, stop in table.series]
    if max(lengths) < FEWEST_ROWS and ratios != ALL_ROWS:
        raise DataError(f"{table.where} has {max(lengths)} rows: too few to train and test on.")
    covariates, ahead = None, None
    if plan.columns:
        table, covariates, ahead = separate(table, plan, target)
    several = len(table.series) > 1
    if several and not plan.columns and _can_join(table, layout):
        data = _side_by_side(table, ratios)
    else:
        data = _end_to_end(table, ratios, covariates)
    form = replace(table.form, rows=len(data.values))
    data = replace(data, zone=None if form.local else form.zone, ahead=ahead, form=form)
    if len(data.last_rows(1)) > 1:
        data = replace(data, scaling=None if options.scaling == "shared" else "series")
    if plan.columns:
        roles: dict[str, Any] = {role: getattr(plan, role) for role in ROLES}
        lines = [*data.understood, *plan.describe()]
        if ahead:
            rows = max(map(len, ahead.values()))
            lines.append(f"rows beyond the last value to forecast from: {rows:,}")
        data = replace(data, understood=tuple(lines), **roles)
    return choose_target(_without_unmeasured(data, target), target)


def _without_unmeasured(data: ForecastingData, target: Sequence[str]) -> ForecastingData:
    """Data without the channels that have no value in the training rows."""
    train = data.values[data.splits.train.start : data.splits.train.stop]
    if not len(train):
        return data
    empty = np.isnan(train).all(axis=0)
    if not empty.any():
        return data
    names = [data.columns[place] for place in np.flatnonzero(empty)]
    if empty.all() or set(names) & set(target):
        raise DataError(
            f"{data.name}: {some(names)} has no value in the {len(train):,} training rows: other "
            "shares with --split, or leave it out with --ignore."
        )
    note = f"Left out, no value in the training rows: {some(names)}."
    return replace(data.take(np.flatnonzero(~empty).tolist()), notes=(*data.notes, note))


def choose_target(data: ForecastingData, target: Sequence[str]) -> ForecastingData:
    """The same data with the channels to forecast; none named: all of them."""
    for name in target:
        if name not in data.columns:
            raise DataError(
                f"{data.name}: target {name!r} is no channel; channels are {some(data.columns, 8)}."
            )
    if not target or set(target) == set(data.columns):
        return data
    line = f"target: {some(target)}; the other channels are inputs only"
    return replace(data, target=tuple(target), understood=(*data.understood, line))


def _can_join(table: Table, layout: Layout) -> bool:
    """Whether the series of a table become channels side by side."""
    if layout not in ("auto", "channels", "series"):
        raise ArgumentError(f"layout must be auto, channels or series, got {layout!r}.")
    first = slice(*table.series[0][1:])
    together = len(table.names) == 1 and all(
        stop - start == first.stop - first.start
        and (table.times is None or np.array_equal(table.times[start:stop], table.times[first]))
        for _, start, stop in table.series
    )
    if layout == "channels" and not together:
        raise DataError(
            f"{table.where}: the {len(table.series)} series do not share all times (or have "
            "several channels each), so they cannot be channels of one."
        )
    return together and layout != "series"


def _side_by_side(table: Table, ratios: tuple[float, ...]) -> ForecastingData:
    """Every series a channel."""
    values = np.stack([table.values[start:stop, 0] for _, start, stop in table.series], axis=1)
    times = None if table.times is None else table.times[: table.series[0].stop]
    return _make(
        table,
        values,
        columns=tuple(name for name, *_ in table.series),
        splits=split_by_ratio(len(values), ratios),
        timestamps=times,
    )


def _end_to_end(
    table: Table, ratios: tuple[float, ...], covariates: np.ndarray | None
) -> ForecastingData:
    """Every series a segment: all training parts, then validation, then test."""
    if len(table.series) == 1:
        splits = split_by_ratio(len(table.values), ratios)
        return _make(
            table,
            table.values,
            columns=table.names,
            splits=splits,
            timestamps=table.times,
            segments=table.series if table.form.long else (),
            covariates=None if covariates is None else covariates.astype(np.float32),
        )
    splits_by_series = [split_by_ratio(stop - start, ratios) for _, start, stop in table.series]
    order, segments, borders = split_major(table.series, splits_by_series)
    return _make(
        table,
        table.values[order],
        columns=table.names,
        splits=borders,
        timestamps=None if table.times is None else table.times[order],
        segments=segments,
        covariates=None if covariates is None else covariates[order].astype(np.float32),
    )


def split_major(
    series: Sequence[Segment], splits: Sequence[Splits]
) -> tuple[np.ndarray, tuple[Segment, ...], Splits]:
    """Order of rows by split, then by series, and the borders between segments."""
    order: list[np.ndarray] = []
    segments: list[Segment] = []
    ends = [0]
    for split in ("train", "val", "test"):
        position = ends[-1]
        for (name, start, _), own in zip(series, splits, strict=True):
            rows = own[split]
            if len(rows):
                order.append(np.arange(rows.start, rows.stop) + start)
                segments.append(Segment(name, position, position + len(rows)))
                position += len(rows)
        ends.append(position)
    borders = Splits(*(range(start, stop) for start, stop in pairwise(ends)))
    return np.concatenate(order), tuple(segments), borders


def _make(table: Table, values: np.ndarray, **parts: Any) -> ForecastingData:
    """The data of a table, in float32, with notes on what that costs and on constant channels."""
    single = values.astype(np.float32) if values.dtype != np.float32 else values
    if not isinstance(single, np.memmap):
        single = np.ascontiguousarray(single)
    notes = [*table.notes, *_coarse_note(values, parts["columns"])]
    if len(parts.get("segments", ())) < 2:
        notes += _late_notes(single, parts["columns"], parts["timestamps"])
    train = single[parts["splits"].train.start : parts["splits"].train.stop]
    if len(train):
        flat = np.flatnonzero(np.fmin.reduce(train, axis=0) == np.fmax.reduce(train, axis=0))
        named = some([repr(parts["columns"][place]) for place in flat])
        if len(flat):
            notes.append(f"Constant in the training rows, so there is nothing to learn: {named}.")
    return ForecastingData(
        name=table.name,
        values=single,
        frequency=table.step,
        notes=tuple(notes),
        understood=table.understood,
        reach_back=True,
        **parts,
    )


def _coarse_note(values: np.ndarray, columns: Sequence[str]) -> list[str]:
    """A note on columns that change by less than float32 can hold there."""
    if values.dtype.itemsize < 8 or not len(values):
        return []
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(np.float32))
    coarse = np.flatnonzero((high > low) & (high - low < FEWEST_FLOAT_STEPS * step))
    if not len(coarse):
        return []
    names = some([repr(columns[place]) for place in coarse])
    return [f"{names}: changes are smaller than float32 can hold there: subtract an offset first."]


def _late_notes(values: np.ndarray, names: Sequence[str], stamps: np.ndarray | None) -> list[str]:
    """Name columns of a single series that begin late or end early, with their dates."""
    late, early = [], []
    for place in columns_with_gaps(values):
        name = names[place]
        measured = np.flatnonzero(~np.isnan(values[:, place]))
        if not len(measured):
            continue
        first, last = int(measured[0]), int(measured[-1])
        when = (lambda row: f"row {row + 1}") if stamps is None else (lambda row: str(stamps[row]))
        if first:
            late.append(f"{name!r} at {when(first)}")
        if last < len(values) - 1:
            early.append(f"{name!r} at {when(last)}")
    notes = [f"Columns that begin late: {some(late)}."] if late else []
    return notes + ([f"Columns that end early: {some(early)}."] if early else [])


def separate(
    table: Table, plan: CovariatePlan, target: Sequence[str] = ()
) -> tuple[Table, np.ndarray, dict[str, np.ndarray] | None]:
    """Set the covariates of a table apart from its channels."""
    if table.columns is None:
        raise DataError(f"{table.where} is an array, whose columns have no names: use a frame.")
    places = [table.columns.index(name) for name in plan.columns]
    rest = [place for place in range(len(table.columns)) if place not in places]
    if not rest:
        raise DataError(f"{table.where}: every column is a covariate, so none is left to forecast.")
    aim = [place for place in rest if not target or table.columns[place] in target]
    kept: list[np.ndarray] = []
    series: list[Segment] = []
    ahead: dict[str, np.ndarray] = {}
    counters = dict(table.form.counters)
    position = 0
    for name, start, stop in table.series:
        rows = np.arange(start, stop)
        for feature in plan.static:
            held = table.values[rows, table.columns.index(feature)]
            if len(np.unique(held[~np.isnan(held)])) != 1:
                raise DataError(
                    f"{table.where}, series {name!r}: static feature {feature!r} changes, or has "
                    "no value: name it with --past or --future, or fill it in."
                )
        measured = np.flatnonzero(~np.isnan(table.values[rows][:, aim]).all(axis=1))
        last = int(measured[-1]) + 1 if plan.future and len(measured) else len(rows)
        following = table.values[rows[last:]][:, places].astype(np.float32)
        following[:, : len(plan.past)] = 0
        if len(following):
            ahead[name] = following
            key = name if name in counters else ""
            if key in counters:
                end, step = counters[key]
                counters[key] = (end - step * len(following), step)
        kept.append(rows[:last])
        series.append(Segment(name, position, position + last))
        position += last
    order = np.concatenate(kept)
    channels = tuple(table.columns[place] for place in rest)
    form = replace(table.form, counters=counters)
    if form.long:
        form = replace(form, channels=channels)
    cut = replace(
        table,
        values=table.values[order][:, rest],
        columns=channels,
        times=None if table.times is None else table.times[order],
        order=table.order[order],
        series=tuple(series),
        form=form,
    )
    return cut, table.values[order][:, places], ahead or None
