"""A file or frame, read once into one `Table`: values, times, series, and what was understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.datasets import Segment
from sacm.data.dates import Times
from sacm.data.files import Source, load_source
from sacm.data.form import Form
from sacm.data.grid import Rows, check_frequency, order_rows
from sacm.data.numbers import LARGEST, Reading, flag, some
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

MOST_NAMES = 12  # names printed in one line, at most


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
        grid: Whether to insert the rows that a regular grid lacks, and to refuse irregular times;
            False keeps the rows as they are and notes what a grid lacks.
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
    frame, reading = loaded.content, Reading(loaded.where, options, loaded.separator)
    reading.notes += loaded.notes
    index = frame.index
    _check_columns(frame, also, reading)
    usual = is_usual(frame) and not options.id and not options.time
    ids = list(options.id or ([loaded.id] if loaded.id else [USUAL_ID] if usual else []))
    time = [USUAL_TIME] if usual else list(options.time or ())
    columns = options.columns
    if usual and columns is None and USUAL_CHANNEL not in (options.ignore or ()):
        columns = (USUAL_CHANNEL,)
    frame = frame.drop(columns=list(options.ignore or ()))
    ids = [each for each in ids if each in frame.columns]
    frame, ids, time = turn_wide(frame, ids, time, reading)
    counter = _nameless_counter(frame, time)
    wanted = [*(columns or ()), *also]
    skip = [*wanted, *(options.category or ())]
    times, others = find_times(frame.drop(columns=counter), reading, time=time, skip=skip, ids=ids)
    if options.zone is not None and (times is None or times.stamps is None):
        raise DataError(
            f"{loaded.where} has no dates, so it has no zone: name their column with "
            f"{flag('time')}."
        )
    others = [each for each in others if each not in wanted]
    ids = ids or find_ids(frame, times, [*others, *skip, options.label or ""], reading)
    frame = frame.reset_index(drop=True)
    id_column, groups = series_rows(frame, ids, reading)
    used = {*ids, *others, *counter, *(times.columns if times is not None else ())}
    found = read_channels(
        frame.drop(columns=[each for each in frame.columns if each in used]),
        reading,
        times=times,
        columns=columns,
        also=also,
        labelled=labelled,
    )
    if times is not None and times.counter is not None:
        reading.note(
            f"The time column {times.columns[0]!r} only counts: it gives the order of rows."
        )
    if index.inferred_type not in ("integer", "datetime64", "period") and (
        times is None or times.columns
    ):
        reading.note("The index of the frame is not used: it holds no dates, or a column does.")
    rows = _order(found, times, groups, reading, grid=grid)
    form = _form(loaded, times, id_column, found, groups)
    return _assemble(loaded, found, times, rows, groups, form, reading)


def _check_columns(frame: pd.DataFrame, also: Sequence[str], reading: Reading) -> None:
    """Refuse tables without rows, names that are not there, and names that are there twice."""
    if not len(frame) or not len(frame.columns):
        raise DataError(f"{reading.where} has no rows or no columns.")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise reading.error(f"two columns are called {twice[0]!r}: rename one.")
    options = reading.options
    category = options.category or ()
    asked = [*(options.time or ()), *(options.id or ()), *(options.ignore or ()), *category]
    asked += [options.label] if options.label else []
    asked += [
        name for name in (*(options.columns or ()), *also) if name.partition("=")[0] not in category
    ]
    for name in asked:
        if name not in frame.columns:
            raise DataError(
                f"{reading.where} has no column {name!r}; it has {some(frame.columns, 8)}."
            )


def _nameless_counter(frame: pd.DataFrame, time: Sequence[str]) -> list[str]:
    """A first column without a name that counts rows: an index that was written to a file."""
    first = str(frame.columns[0])
    if first not in ("", "Unnamed: 0") or first in time or len(frame.columns) < 2:
        return []
    return [first] if frame[first].dtype.kind in "iu" else []


def _order(
    found: Channels,
    times: Times | None,
    groups: list[tuple[str, np.ndarray]],
    reading: Reading,
    *,
    grid: bool,
) -> Rows:
    """Values and labels in order of time, on the grid."""
    labels = [] if found.labels is None else [found.labels]
    values = np.stack([*found.values, *labels], axis=1)
    if times is not None and times.stamps is not None:
        return order_rows(values, times.stamps, groups, reading, grid=grid)
    options = reading.options
    if options.resample is not None:
        raise reading.error(f"there are no dates to resample by: {flag('time')} names a column.")
    check_frequency(options.frequency)
    order = np.concatenate([rows for _, rows in groups])
    ends = [0, *np.cumsum([len(rows) for _, rows in groups]).tolist()]
    return Rows(values[order], None, order, ends, options.frequency if times is None else None)


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
    reading: Reading,
) -> Table:
    """The table, with the lines that say how it was read."""
    count = len(found.names)
    names = [name for name, _ in groups] if form.long else [loaded.name]
    table = Table(
        name=loaded.name,
        where=loaded.where,
        values=np.ascontiguousarray(rows.values[:, :count]),
        columns=tuple(found.names),
        times=None if rows.stamps is None else in_seconds(rows.stamps),
        step=rows.step,
        series=tuple(
            Segment(name, start, stop)
            for name, (start, stop) in zip(names, pairwise(rows.ends), strict=True)
        ),
        order=rows.order,
        form=form,
        source=loaded,
        label=found.label,
        labels=None if found.labels is None else np.ceil(rows.values[:, count]),
        categories=tuple(found.categories),
        notes=tuple(reading.notes),
    )
    ignored = {"not wanted": list(reading.options.ignore)} if reading.options.ignore else {}
    return replace(table, understood=tuple(_describe(table, times, {**ignored, **found.left_out})))


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
        lines.append(f"series ({len(lengths)}, by column {table.form.id!r}, --id): {names}")
        rows += f", {min(lengths):,} to {max(lengths):,} a series"
    lines += [
        rows,
        f"channels ({len(table.names)}, --columns and --ignore choose): "
        f"{some(table.names, MOST_NAMES)}",
    ]
    if table.label is not None:
        lines.append(f"labels: column {table.label!r} (--label)")
    lines += [f"left out, {reason}: {some(names)}" for reason, names in left_out.items()]
    return lines


def _describe_time(table: Table, times: Times | None) -> str:
    """One line on the time: where it was found, how it was read, its step and its span."""
    if times is None:
        return "time: none (--time-column names a column), rows are taken as evenly spaced"
    columns = "the index" if not times.columns else f"column {' + '.join(times.columns)!r}"
    order = " (--date-order)" if times.form and "-%m-" in f"-{times.form}-" else ""
    parts = [f"time: {columns} (--time-column)", f"read as {times.written}{order}"]
    if table.times is None or not len(table.times):
        return ", ".join([*parts, "used for the order of rows only"])
    ends = table.form.write_times(np.sort(table.times)[[0, -1]])
    parts.append("no regular step" if table.step is None else f"step {table.step} (--frequency)")
    parts.append(f"{ends.iloc[0]} to {ends.iloc[1]}")
    if times.style is not None and times.style.startswith("epoch"):
        dates = [str(each).replace("T", " ") for each in np.sort(table.times)[[0, -1]]]
        parts.append(f"that is {dates[0]} to {dates[1]} in UTC")
    if times.zone is not None:
        clock = "by the local clock" if times.local else "kept in UTC"
        parts.append(f"zone {times.zone} (--zone), {clock}")
    elif times.style is None:
        parts.append("no zone (--zone)")
    return ", ".join(parts)


def _from_array(loaded: Source, array: np.ndarray, options: ReadOptions) -> Table:
    """A table without names and times."""
    where = loaded.where
    for name in ("id", "time", "columns", "target", "ignore", "category", "label", "zone"):
        if getattr(options, name):
            raise DataError(f"{where} is an array, whose columns have no names: {name} needs some.")
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
        wrong = np.flatnonzero((np.abs(column) > LARGEST) & ~infinite)
        if len(wrong):
            raise DataError(
                f"{where}: row {wrong[0] + 1} of column {place} is {column[wrong[0]]:g}, which is "
                "too large."
            )
        if infinite.any():
            values = values.copy() if np.shares_memory(values, array) else values
            values[infinite, place] = np.nan
            notes.append(f"Column {place}: {int(infinite.sum()):,} infinite values are gaps.")
    if options.na:
        values = np.where(np.isin(values, [float(word) for word in options.na]), np.nan, values)
    table = Table(
        name=loaded.name,
        where=where,
        values=values,
        columns=None,
        times=None,
        step=options.frequency,
        series=(Segment(loaded.name, 0, len(values)),),
        order=np.arange(len(values)),
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
