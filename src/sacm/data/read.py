"""A file or frame, read once into one `Table`: values, times, series, and what was understood.

`formats` loads the source, `text` finds the table in a text, `times` its times, `grid` its series
and their steps, `columns` its channels and labels; `read_table` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.columns import (
    COUNTER_NAMES,
    Channels,
    Reading,
    clean_numbers,
    flag,
    holds_objects,
    plain_name,
    read_channels,
    some,
)
from sacm.data.datasets import Form, Segment
from sacm.data.formats import Source, load_source
from sacm.data.grid import check_frequency, find_ids, order_rows, series_rows
from sacm.data.text import turn_wide
from sacm.data.times import Times, counts, find_times
from sacm.errors import DataError
from sacm.settings import ReadOptions

LONG_TABLE = ("unique_id", "ds", "y")  # id, time and channel as other libraries name them


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a source: series after series, each in order of time on its grid."""

    name: str
    where: str  # what errors call the table
    values: np.ndarray  # [T, C], NaN where nothing was measured; float64 unless it was an array
    columns: tuple[str, ...] | None  # names of the C channels; None for an array
    times: np.ndarray | None  # [T] datetime64 in UTC or by the local clock, None without dates
    step: str | None  # as a pandas alias, if the rows lie on a grid
    series: tuple[Segment, ...]  # name and rows of each; a single one has the name of the table
    order: np.ndarray  # [T] position in the user's table, -1 for an inserted row
    form: Form  # kind of object that was read; results have the same
    source: Source
    label: str | None = None
    labels: np.ndarray | None = None  # [T] float64 of the column `label`
    categories: tuple[str, ...] = ()  # channels of 0 and 1 that were made of words
    notes: tuple[str, ...] = ()  # what was found, guessed or left out, a sentence each
    understood: tuple[str, ...] = ()  # short lines that say how the table was read

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the C channels; their positions where they have none."""
        return self.columns or tuple(str(place) for place in range(self.values.shape[1]))

    @property
    def inserted(self) -> int:
        """Number of rows that were inserted because the grid lacked them."""
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
    also: Sequence[str] = (),
) -> Table:
    """Read a file, a frame or an array once.

    Args:
        source: What `load_source` takes.
        options: How to read it. Default: found in the data.
        name: A short name. Default: that of the file, or "data".
        grid: Whether to insert the rows that a regular grid lacks, and to refuse irregular times;
            False keeps the rows as they are and notes what a grid lacks.
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
    reading = Reading(loaded.where, options, loaded.separator, list(loaded.notes))
    frame = loaded.content
    if isinstance(frame, np.ndarray):
        return _from_array(loaded, frame, reading)
    _check_columns(frame, also, reading)
    nested = [name for name in frame.columns if holds_objects(frame[name])]
    if nested:
        reading.note(f"Left out, lists or records: {some(nested)}.")
        frame = frame.drop(columns=nested)
    ids, time, columns = list(options.id or ()), list(options.time or ()), options.columns
    if not ids and not time and set(LONG_TABLE) <= set(frame.columns):
        ids, time = [LONG_TABLE[0]], [LONG_TABLE[1]]
        if columns is None and LONG_TABLE[2] not in (options.ignore or ()):
            columns = LONG_TABLE[2:]
    ids = ids or ([loaded.id] if loaded.id else [])
    index, frame = frame.index, frame.drop(columns=list(options.ignore or ()))
    frame, ids, time = turn_wide(frame, [i for i in ids if i in frame.columns], time, reading)
    first = str(frame.columns[0])  # without a name: an index that was written to a file
    saved = first in ("", "Unnamed: 0") and frame[first].dtype.kind in "iu" and first not in time
    if saved and len(frame.columns) > 1:
        frame = frame.drop(columns=first)
    wanted = [*(columns or ()), *also]
    skip = [*wanted, *(options.category or ())]
    times, others = find_times(frame, reading, time=time, skip=skip, ids=ids)
    stamps = None if times is None else times.stamps
    if options.zone is not None and stamps is None:
        raise reading.error(f"there are no dates, so no zone: {flag('time')} names their column.")
    frame = frame.reset_index(drop=True)
    used = {name for name in others if name not in wanted}
    used |= set(time) if times is None else set(times.columns)
    free = [name for name in frame.columns if name not in (*used, *skip, *ids)]
    named = [name for name in free if plain_name(name) in COUNTER_NAMES and len(free) > 1]
    counters = [name for name in named if counts(frame, name, ids, evenly=True)]
    counter = frame[[*time, *counters][0]] if times is None and (time or counters) else None
    if counters or counter is not None:
        counted = some([*counters, *(time if times is None else ())])
        reading.note(f"Left out, only counts the rows: {counted} ({flag('columns')} takes it in).")
    if not ids and stamps is not None:
        ids = find_ids(frame, stamps, [*used, *skip, *counters, options.label or ""], reading)
    id_column, series = series_rows(frame, ids, reading)
    rest = frame.drop(columns=[*used, *counters, *ids], errors="ignore")
    channels = read_channels(rest, reading, stamps=stamps, columns=columns, also=also)
    unused = times is None or times.columns
    if unused and index.inferred_type not in ("integer", "datetime64", "period"):
        reading.note("The index of the frame is not used: it holds no dates, or a column does.")
    labels = [] if channels.labels is None else [channels.labels]
    values = np.stack([*channels.values.values(), *labels], axis=1)
    rows = order_rows(values, stamps, series, reading, grid=grid)
    names = [loaded.name] if id_column is None else [name for name, _ in series]
    borders = zip(names, pairwise(rows.ends), strict=True)
    count = len(channels.values)
    table = Table(
        name=loaded.name,
        where=loaded.where,
        values=np.ascontiguousarray(rows.values[:, :count]),
        columns=tuple(channels.values),
        times=None if rows.stamps is None else in_seconds(rows.stamps),
        step=rows.step,
        series=tuple(Segment(name, start, stop) for name, (start, stop) in borders),
        order=rows.order,
        form=_find_form(loaded, times, counter, series, id_column, channels),
        source=loaded,
        label=channels.label,
        labels=None if channels.labels is None else np.ceil(rows.values[:, count]),
        categories=tuple(channels.categories),
        notes=tuple(reading.notes),
    )
    return replace(table, understood=tuple(_describe(table, times, counter)))


def _check_columns(frame: pd.DataFrame, also: Sequence[str], reading: Reading) -> None:
    """Refuse tables without rows, names that are not there, and names that are there twice."""
    if not len(frame) or not len(frame.columns):
        raise DataError(f"{reading.where} has no rows or no columns.")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise reading.error(f"two columns are called {twice[0]!r}: rename one.")
    options = reading.options
    category = options.category or ()
    # "weather=rain" is a channel that is made of the category "weather".
    channels = [n for n in (*(options.columns or ()), *also) if n.partition("=")[0] not in category]
    label = [options.label] if options.label else []
    for names in (options.time, options.id, options.ignore, category, label, channels):
        for name in names or ():
            if name not in frame.columns:
                raise DataError(
                    f"{reading.where} has no column {name!r}; it has {some(frame.columns, 8)}."
                )


def _find_form(
    loaded: Source,
    times: Times | None,
    counter: pd.Series | None,
    series: list[tuple[str, np.ndarray]],
    ids: pd.Series | None,
    channels: Channels,
) -> Form:
    """The form that the data came in, so that results have the same."""
    form = Form(loaded.kind)
    if times is not None:
        index_name = getattr(getattr(loaded.content, "index", None), "name", None)
        form = replace(
            form,
            time=" ".join(times.columns) or (None if index_name is None else str(index_name)),
            indexed=not times.columns,
            zone=times.zone,
            local=times.local,
            style=times.style,
        )
    if counter is not None:
        ends = {name: counter.iloc[own[-2:]].tolist() for name, own in series if len(own) > 1}
        counters = {name: (last, last - before) for name, (before, last) in ends.items()}
        form = replace(form, time=str(counter.name), counters=counters)
    if ids is not None:
        numeric = str(ids.dtype) if pd.api.types.is_numeric_dtype(ids) else None
        held = tuple(channels.values)
        form = replace(form, long=True, id=str(ids.name), id_type=numeric, channels=held)
    return form


def in_seconds(stamps: np.ndarray) -> np.ndarray:
    """Dates `[T]` in seconds, or in nanoseconds where they have fractions of one."""
    whole = stamps.astype("datetime64[s]")
    return whole if (whole == stamps).all() else stamps.astype("datetime64[ns]")


def _describe(table: Table, times: Times | None, counter: pd.Series | None) -> list[str]:
    """Short lines on time, series, rows and channels."""
    rows = f"rows: {len(table.values):,}"
    if table.inserted:
        rows += f", {table.inserted:,} of them inserted because their times were missing"
    lines = ["time: none (--time-column names a column), rows are taken as evenly spaced"]
    if counter is not None:
        lines = [f"time: column {counter.name!r} (--time-column) gives the order of rows only"]
    if times is not None:
        lines = [_describe_time(table, times)]
    if table.form.long:
        lengths = [stop - start for _, start, stop in table.series]
        names = some([name for name, *_ in table.series], 12)
        lines.append(f"series ({len(lengths)}, by column {table.form.id!r}, --id): {names}")
        rows += f", {min(lengths):,} to {max(lengths):,} a series"
    names = some(table.names, 12)
    lines += [rows, f"channels ({len(table.names)}, --columns and --ignore choose): {names}"]
    return lines + ([f"labels: column {table.label!r} (--label)"] if table.label else [])


def _describe_time(table: Table, times: Times) -> str:
    """One line on the time: where it was found, how it was read, its step and its span."""
    columns = "the index" if not times.columns else f"column {' + '.join(times.columns)!r}"
    order = " (--date-order)" if times.form and "-%m-" in f"-{times.form}-" else ""
    parts = [f"time: {columns} (--time-column)", f"read as {times.written}{order}"]
    assert table.times is not None
    span = np.sort(table.times)[[0, -1]]
    ends = table.form.write_times(span)
    parts.append("no regular step" if table.step is None else f"step {table.step} (--frequency)")
    parts.append(f"{ends.iloc[0]} to {ends.iloc[1]}")
    if times.style is not None and times.style.startswith("epoch"):
        parts.append(f"that is {span[0]} to {span[1]} in UTC".replace("T", " ", 2))
    if times.zone is not None:
        clock = "by the local clock" if times.local else "kept in UTC"
        parts.append(f"zone {times.zone} (--zone), {clock}")
    elif times.style is None:
        parts.append("no zone (--zone)")
    return ", ".join(parts)


def _from_array(loaded: Source, array: np.ndarray, reading: Reading) -> Table:
    """A table without names and times."""
    where, options = loaded.where, reading.options
    for name in ("id", "time", "columns", "target", "ignore", "category", "label", "zone"):
        if getattr(options, name):
            raise DataError(f"{where} is an array, whose columns have no names: {name} needs some.")
    check_frequency(options.frequency)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{where}: the array holds {array.dtype}, not numbers.")
    values = array[:, None] if array.ndim == 1 else array
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{where}: the array must be [T] or [T, C], got {list(array.shape)}.")
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    for place, column in enumerate(values.T):  # one by one: the array may be larger than memory
        cleaned = clean_numbers(column, place, reading)
        if cleaned is not column:
            values = values.copy() if np.shares_memory(values, array) else values
            values[:, place] = cleaned
    table = Table(
        name=loaded.name,
        where=where,
        values=values,
        columns=None,
        times=None,
        step=options.frequency,
        series=(Segment(loaded.name, 0, len(values)),),
        order=np.arange(len(values)),
        form=Form("tensor" if loaded.kind == "tensor" else "array", flat=array.ndim == 1),
        source=loaded,
        notes=tuple(reading.notes),
    )
    return replace(table, understood=tuple(_describe(table, None, None)))


def keep_present(source: Source, options: ReadOptions) -> ReadOptions:
    """Options without labels and ignored columns that new data do not hold."""
    columns = set() if isinstance(source.content, np.ndarray) else set(source.content.columns)
    kept: dict[str, Any] = {"label": options.label if options.label in columns else None}
    if options.ignore:
        kept["ignore"] = tuple(name for name in options.ignore if name in columns)
    return options.model_copy(update=kept)
