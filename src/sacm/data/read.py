"""A file or frame, read once into one `Table`: values, times, series, and what was understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.datasets import Segment
from sacm.data.dates import Times
from sacm.data.files import Source, load_source
from sacm.data.form import Form
from sacm.data.grid import Rows, check_frequency, order_rows, runs
from sacm.data.numbers import LARGEST, NumberStyle, some
from sacm.data.panel import (
    USUAL_CHANNEL,
    USUAL_ID,
    USUAL_TIME,
    find_ids,
    is_usual,
    series_rows,
    turn_wide,
)
from sacm.data.roles import Channels, read_channels
from sacm.data.times import find_times
from sacm.errors import DataError
from sacm.settings import ReadOptions

MOST_NAMES = 12  # of a list in a line


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a source: series after series, each in order of time on its grid.

    Attributes:
        name: A short name.
        where: What errors call the table.
        values: `[T, C]`, NaN where nothing was measured; float64 unless an array came otherwise.
        columns: Names of the C channels; None for an array, whose columns have none.
        times: `[T]` datetime64 in UTC or by the local clock, None without dates.
        step: The time step as a pandas alias, if the rows lie on a grid.
        series: Name and rows of every series; a single one has the name of the table.
        order: `[T]` position of each row in the user's table, -1 for an inserted row.
        form: How the data came, to give results back alike; with the zone of the times.
        source: What was loaded.
        labels: `[T]` float64 of the column `label`, None if there is none.
        categories: Channels of 0 and 1 that were made of words.
        notes: What was found, guessed or left out, a sentence each.
        understood: Short lines that say how the table was read.
    """

    name: str
    where: str
    values: np.ndarray
    columns: tuple[str, ...] | None
    times: np.ndarray | None
    step: str | None
    series: tuple[Segment, ...]
    order: np.ndarray
    form: Form
    source: Source
    label: str | None = None
    labels: np.ndarray | None = None
    categories: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the C channels; their positions where they have none."""
        return self.columns or tuple(str(place) for place in range(self.values.shape[1]))

    @property
    def inserted(self) -> int:
        """Rows that were not there, though the grid has them."""
        return int((self.order < 0).sum())

    def take(self, columns: Sequence[int]) -> Table:
        """Some of the channels."""
        names = None if self.columns is None else tuple(self.columns[place] for place in columns)
        return replace(self, values=self.values[:, list(columns)], columns=names)


def read_table(
    source: Any,
    options: ReadOptions | Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    grid: bool = True,
    labelled: bool = False,
    also: Sequence[str] = (),
) -> Table:
    """Read a file, a frame or an array once.

    Args:
        source: What `load_source` takes.
        options: How to read it. Default: found in the data.
        name: A short name. Default: that of the file, or "data".
        grid: Whether to insert the rows that a regular grid lacks; False keeps irregular rows.
        labelled: Whether labels are usual, so that no note names a column called label.
        also: Columns that are wanted besides the channels, whatever they look like.

    Returns:
        The table. Gaps stay NaN: what becomes of them is decided by the strategy that trains.

    Raises:
        DataError: The source cannot be read; the sentence says where, and which option decides.

    Example:
        >>> read_table(np.zeros((5, 2))).values.shape
        (5, 2)
    """
    if not isinstance(options, ReadOptions):
        options = ReadOptions.of(options or {})
    loaded = load_source(source, options, name=name)
    if isinstance(loaded.content, np.ndarray):
        return _from_array(loaded, loaded.content, options)
    frame, where, notes = loaded.content, loaded.where, list(loaded.notes)
    frame_index = frame.index
    _check_columns(frame, options, also, where)
    if not len(frame) or not len(frame.columns):
        raise DataError(f"{where} has no rows or no columns.")
    usual = is_usual(frame) and not options.id and not options.time
    ids = list(options.id or ([loaded.id] if loaded.id else [USUAL_ID] if usual else []))
    time = [USUAL_TIME] if usual else list(options.time or ())
    columns = options.columns
    if usual and columns is None and USUAL_CHANNEL not in (options.ignore or ()):
        columns = (USUAL_CHANNEL,)
    frame = frame.drop(columns=list(options.ignore or ()))
    ids = [each for each in ids if each in frame.columns]
    frame, ids, time = turn_wide(frame, ids, time, where, notes)
    channels_asked = [*(columns or ()), *also]
    times, others = find_times(
        frame.drop(columns=_nameless_counter(frame, time)),
        where,
        time=time,
        skip=[*channels_asked, *(options.category or ())],
        ids=ids,
        date_order=options.date_order,
        zone=options.zone,
        notes=notes,
    )
    _check_zone(options.zone, times, where)
    others = [each for each in others if each not in channels_asked]
    if not ids:
        skip = [*others, *channels_asked, *(options.category or ()), options.label or ""]
        ids = find_ids(frame, times, skip, where)
        if ids:
            notes.append(
                f"Column {ids[0]!r} was taken to tell series apart: id= names another, ignore= "
                "leaves it out."
            )
    frame = frame.reset_index(drop=True)
    id_column, groups = series_rows(frame, ids, where)
    used = [*ids, *others, *(times.columns if times is not None else ())]
    used += _nameless_counter(frame, time)
    found = read_channels(
        frame.drop(columns=list(dict.fromkeys(each for each in used if each in frame.columns))),
        where,
        NumberStyle(options.decimal, frozenset(_na_words(options.na)), loaded.separator),
        times=times,
        columns=columns,
        label=options.label,
        category=options.category or (),
        also=also,
        labelled=labelled,
    )
    if times is not None and times.counter is not None:
        notes.append(
            f"The time column {times.columns[0]!r} only counts: it gives the order of rows (time=)."
        )
    if not usual and (times is None or times.columns) and _has_unused_index(frame_index):
        notes.append("The index of the frame is not used: it holds no dates, or a column does.")
    notes += found.notes
    rows = _order(found, times, groups, where, options, grid=grid)
    form = _form(loaded, times, id_column, found, groups)
    return _assemble(loaded, found, times, rows, groups, form, id_column, notes, options)


def _check_columns(
    frame: pd.DataFrame, options: ReadOptions, also: Sequence[str], where: str
) -> None:
    """Refuse names that occur twice, and names that are no columns."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"{where}: two columns are called {twice!r}: rename one.")
    category = options.category or ()
    asked: list[str] = [*(options.time or ()), *(options.ignore or ()), *(options.id or ())]
    asked += [*([options.label] if options.label else ()), *category]
    asked += [
        name for name in (*(options.columns or ()), *also) if name.partition("=")[0] not in category
    ]
    for name in asked:
        if name not in frame.columns:
            raise DataError(f"{where} has no column {name!r}; it has {some(frame.columns, 8)}.")


def _nameless_counter(frame: pd.DataFrame, time: Sequence[str]) -> list[str]:
    """A first column without a name that counts rows: an index that was written to a file."""
    first = str(frame.columns[0])
    if first not in ("", "Unnamed: 0") or first in time or len(frame.columns) < 2:
        return []
    return [first] if frame[first].dtype.kind in "iu" else []


def _has_unused_index(index: pd.Index) -> bool:
    return index.inferred_type not in ("integer", "datetime64", "period")


def _check_zone(zone: str | None, times: Times | None, where: str) -> None:
    if zone is not None and (times is None or times.stamps is None):
        raise DataError(f"{where} has no dates, so it has no zone: time= (--time) names a column.")


def _na_words(words: Sequence[str] | None) -> list[str]:
    return [word.strip().lower() for word in words or ()]


def _order(
    found: Channels,
    times: Times | None,
    groups: list[tuple[str, np.ndarray]],
    where: str,
    options: ReadOptions,
    *,
    grid: bool,
) -> Rows:
    """Values and labels in order of time, on the grid."""
    labels = [] if found.labels is None else [found.labels]
    values = np.stack([*found.values, *labels], axis=1)
    if times is not None and times.stamps is not None:
        return order_rows(
            values,
            times.stamps,
            groups,
            where,
            grid=grid,
            frequency=options.frequency,
            resample=options.resample,
            duplicates=options.duplicates,
        )
    if options.resample is not None:
        raise DataError(f"{where} has no dates to resample by: time= (--time) names a column.")
    check_frequency(options.frequency)
    order = np.concatenate([rows for _, rows in groups])
    ends = [0, *np.cumsum([len(rows) for _, rows in groups]).tolist()]
    step = options.frequency if times is None else None
    return Rows(values[order], None, order, ends, step)


def _form(
    loaded: Source,
    times: Times | None,
    ids: pd.Series | None,
    found: Channels,
    groups: list[tuple[str, np.ndarray]],
) -> Form:
    """How the data came, and how they told the time."""
    content = loaded.content
    indexed = times is not None and not times.columns
    name = None if times is None else " ".join(times.columns) or None
    if indexed and not isinstance(content, np.ndarray):
        name = None if content.index.name is None else str(content.index.name)
    counters = {}
    if times is not None and times.counter is not None:
        for series, rows in groups:
            if len(rows) > 1:
                last, before = (float(times.counter[row]) for row in rows[[-1, -2]])
                counters[series] = (last, last - before)
    numeric = ids is not None and pd.api.types.is_numeric_dtype(ids)
    form = Form(
        loaded.kind,
        long=ids is not None,
        time=name,
        indexed=indexed,
        zone=None if times is None else times.zone,
        local=times is not None and times.local,
        counters=counters,
        id_type=str(ids.dtype) if ids is not None and numeric else None,
        style=None if times is None else times.style,
    )
    return form if ids is None else replace(form, id=str(ids.name), channels=tuple(found.names))


def _assemble(
    loaded: Source,
    found: Channels,
    times: Times | None,
    rows: Rows,
    groups: list[tuple[str, np.ndarray]],
    form: Form,
    ids: pd.Series | None,
    notes: list[str],
    options: ReadOptions,
) -> Table:
    """The table, with the lines that say how it was read."""
    count = len(found.names)
    values = np.ascontiguousarray(rows.values[:, :count])
    labels = None if found.labels is None else np.ceil(rows.values[:, count])
    names = [name for name, _ in groups] if ids is not None else [loaded.name]
    series = tuple(
        Segment(name, span.start, span.stop)
        for name, span in zip(names, runs(rows.ends), strict=True)
    )
    stamps = None if rows.stamps is None else in_seconds(rows.stamps)
    table = Table(
        name=loaded.name,
        where=loaded.where,
        values=values,
        columns=tuple(found.names),
        times=stamps,
        step=rows.step,
        series=series,
        order=rows.order,
        form=form,
        source=loaded,
        label=found.label,
        labels=labels,
        categories=tuple(found.categories),
        notes=(*notes, *rows.notes),
    )
    ignored = {"not wanted": list(options.ignore)} if options.ignore else {}
    lines = _describe(table, times, {**ignored, **found.left_out})
    return replace(table, understood=tuple(lines))


def in_seconds(stamps: np.ndarray) -> np.ndarray:
    """Dates `[T]` in seconds, or in nanoseconds where they have fractions of one."""
    whole = stamps.astype("datetime64[s]")
    return whole if (whole == stamps).all() else stamps.astype("datetime64[ns]")


def _describe(table: Table, times: Times | None, left_out: Mapping[str, list[str]]) -> list[str]:
    """Short lines on time, series, rows, channels and what was left out."""
    count = len(table.values)
    rows = f"rows: {count:,}"
    if table.inserted:
        rows += f", {table.inserted:,} of them inserted because their times were missing"
    lines = [_describe_time(table, times)]
    if table.form.long:
        lengths = [stop - start for _, start, stop in table.series]
        names = some([name for name, *_ in table.series], MOST_NAMES)
        lines.append(f"series ({len(lengths)}, by column {table.form.id!r}, id=): {names}")
        rows += f", {min(lengths):,} to {max(lengths):,} a series"
    lines += [
        rows,
        f"channels ({len(table.names)}, columns= and ignore= choose): "
        f"{some(table.names, MOST_NAMES)}",
    ]
    if table.label is not None:
        lines.append(f"labels: column {table.label!r} (label=)")
    lines += [f"left out, {reason}: {some(names)}" for reason, names in left_out.items()]
    return lines


def _describe_time(table: Table, times: Times | None) -> str:
    """One line on the time: where it was found, how it was read, its step and its span."""
    if times is None:
        return "time: none (time= names a column), rows are taken as evenly spaced"
    columns = "the index" if not times.columns else f"column {' + '.join(times.columns)!r}"
    order = " (date_order=)" if times.form and "-%m-" in f"-{times.form}-" else ""
    parts = [f"time: {columns} (time=)", f"read as {times.written}{order}"]
    if table.times is None or not len(table.times):
        return ", ".join([*parts, "used for the order of rows only"])
    ends = table.form.write_times(np.sort(table.times)[[0, -1]])
    parts.append("no regular step" if table.step is None else f"step {table.step} (frequency=)")
    parts.append(f"{ends.iloc[0]} to {ends.iloc[1]}")
    if times.style is not None and times.style.startswith("epoch"):
        dates = [str(each).replace("T", " ") for each in np.sort(table.times)[[0, -1]]]
        parts.append(f"that is {dates[0]} to {dates[1]} in UTC")
    if times.zone is not None:
        clock = "by the local clock" if times.local else "kept in UTC"
        parts.append(f"zone {times.zone} (zone=), {clock}")
    elif times.style is None:
        parts.append("no zone (zone=)")
    return ", ".join(parts)


def _from_array(loaded: Source, array: np.ndarray, options: ReadOptions) -> Table:
    """A table without names and times."""
    where = loaded.where
    for name in ("id", "time", "columns", "target", "ignore", "category", "label", "zone"):
        if getattr(options, name):
            raise DataError(
                f"{where} is an array, whose columns have no names: {name}= needs some."
            )
    check_frequency(options.frequency)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{where}: the array holds {array.dtype}, not numbers.")
    flat = array.ndim == 1
    values = array[:, None] if flat else array
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{where}: the array must be [T] or [T, C], got {list(array.shape)}.")
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    notes = []
    for place in range(values.shape[1]):
        column = np.asarray(values[:, place])
        infinite = np.isinf(column)
        wrong = np.flatnonzero(np.abs(np.where(infinite, 0, column)) > LARGEST)
        if len(wrong):
            value = f"{column[wrong[0]]:g}"
            raise DataError(
                f"{where}: row {wrong[0] + 1} of column {place} is {value}, which is too large."
            )
        if infinite.any():
            values = values.copy() if values is array or flat else values
            values[infinite, place] = np.nan
            notes.append(f"Column {place}: {int(infinite.sum()):,} infinite values are gaps.")
    codes = [float(word) for word in options.na or ()]
    if codes:
        values = np.where(np.isin(values, codes), np.nan, values)
    count = len(values)
    table = Table(
        name=loaded.name,
        where=where,
        values=values,
        columns=None,
        times=None,
        step=options.frequency,
        series=(Segment(loaded.name, 0, count),),
        order=np.arange(count),
        form=Form("tensor" if loaded.kind == "tensor" else "array", flat=flat),
        source=loaded,
        notes=tuple(notes),
    )
    return replace(table, understood=tuple(_describe(table, None, {})))


def keep_present(source: Source, options: ReadOptions) -> ReadOptions:
    """Options without labels and ignored columns that new data do not hold."""
    columns = set() if isinstance(source.content, np.ndarray) else set(source.content.columns)
    kept: dict[str, Any] = {}
    if options.ignore:
        kept["ignore"] = tuple(name for name in options.ignore if name in columns)
    if options.label not in columns:
        kept["label"] = None
    return options.model_copy(update=kept)
