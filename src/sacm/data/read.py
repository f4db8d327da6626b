"""A file or frame, read once into one `Table`: values, times, series, and what was understood.

`formats` loads the source, `times` finds its times, `columns` its channels and labels. Here series
are told apart and put in order of time on the grid of the commonest step; gaps stay empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.columns import Reading, clean_numbers, find_series, flag, read_channels
from sacm.data.datasets import Form, Segment
from sacm.data.formats import Source, load_source, turn_wide
from sacm.data.times import (
    FEWEST_ROWS,
    Times,
    check_frequency,
    counts,
    find_step,
    find_times,
    seconds,
)
from sacm.errors import DataError, list_names
from sacm.settings import ReadOptions

LONG_TABLE = ("unique_id", "ds", "y")  # id, time and channel as other libraries name them
MANY_INSERTED = 0.1  # share of rows that were not there, above which a note names the option
MOST_INSERTED = 0.5  # share above which a table is refused
LARGEST_JITTER = 0.1  # of the step, by which times may lie beside the grid
NEAR_STEP = 0.05  # relative difference between the usual step and a round one
FAR_ROWS = 20  # grid rows a row beyond which a date must be a mistake
MOSTLY_HELD = 0.8  # share of the steps of a proposed length that hold a row
ROUND_STEPS = (
    *("10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "15s", "30s"),
    *("1min", "2min", "5min", "10min", "15min", "20min", "30min", "h", "2h", "3h", "4h", "6h"),
    *("8h", "12h", "D", "7D", "30D"),
)
Frames = dict[str, pd.DataFrame]  # the rows of each series by time
Series = list[tuple[str, np.ndarray]]  # names and rows
ORDER = "order"  # the column of row numbers while a series is put on its grid


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


def read_table(
    source: Any,
    options: ReadOptions | Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    grid: bool = True,
    also: Sequence[str] = (),
) -> Table:
    """Read a file, a frame or an array once; gaps stay NaN.

    Args:
        source: What `load_source` takes.
        options: How to read it. Default: found in the data; an error names the option that decides.
        name: A short name. Default: that of the file, or "data".
        grid: Whether to insert the rows that a regular grid lacks, and to refuse irregular times;
            False keeps the rows as they are and notes what a grid lacks.
        also: Columns that are wanted besides the channels, whatever they look like.

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
    index_name = frame.index.name
    frame = _check_columns(frame, also, reading)
    frame = frame.drop(columns=list(options.ignore or ()))
    ids = [each for each in options.id or () if each in frame.columns]
    time, columns = list(options.time or ()), options.columns
    if not options.id and not time and set(LONG_TABLE) <= set(frame.columns):
        ids, time, columns = [LONG_TABLE[0]], [LONG_TABLE[1]], columns or LONG_TABLE[2:]
    indexed = not time and isinstance(frame.index, pd.PeriodIndex | pd.DatetimeIndex)
    if indexed:
        time = [str(index_name or "index")]
        frame = frame.reset_index(names=time[0])
    elif frame.index.inferred_type != "integer":
        reading.note("The index of the frame is not used: it holds no dates, or a column does.")
    elif not time:
        frame, ids, time = turn_wide(frame, ids, reading)
    first = str(frame.columns[0])
    if first in ("", "Unnamed: 0") and frame[first].dtype.kind in "iu" and len(frame.columns) > 1:
        frame = frame.drop(columns=first)  # an index that was written to a file
    wanted = [*(columns or ()), *also]
    skip = [*wanted, *(options.category or ())]
    frame, times, others = find_times(frame.reset_index(drop=True), reading, time, skip, ids)
    places = frame.index.to_numpy()  # rows without a time may be left out
    stamps = None if times is None else times.stamps
    if options.zone is not None and stamps is None:
        raise reading.error("there are no dates, so no zone: --time-column names their column.")
    frame = frame.reset_index(drop=True)
    used = {each for each in others if each not in wanted}
    used |= set(time) if times is None else set(times.columns)
    if times is not None:
        reading.time = ",".join(times.columns)
    free = [each for each in frame.columns if each not in (*used, *skip, *ids)]
    counters = [each for each in free if len(free) > 1 and counts(frame, each, ids, evenly=True)]
    counter = frame[[*time, *counters][0]] if times is None and (time or counters) else None
    if counters or counter is not None:
        counted = list_names([*counters, *(time if times is None else ())])
        reading.note(f"Left out, only counts the rows: {counted} (--columns takes it in).")
    skip += [*used, *counters, options.label or ""]
    ids, id_column, series = find_series(frame, ids, stamps, skip, reading)
    rest = frame.drop(columns=[*used, *counters, *ids], errors="ignore")
    channels = read_channels(rest, reading, stamps, columns, also)
    labels = [] if channels.labels is None else [channels.labels]
    values = np.stack([*channels.values.values(), *labels], axis=1)
    rows = pd.DataFrame(values, index=stamps).assign(**{ORDER: places})
    rows, ends, step = _order_rows(rows, series, reading, grid)
    form = Form(loaded.kind)
    if times is not None:
        written = None if indexed and index_name is None else " ".join(times.columns)
        form = replace(form, time=written, indexed=indexed, zone=times.zone, local=times.local)
    if counter is not None:
        tails = {name: counter.iloc[own[-2:]].tolist() for name, own in series if len(own) > 1}
        steps = {name: (last, last - before) for name, (before, last) in tails.items()}
        form = replace(form, time=str(counter.name), counters=steps)
    names, held = [loaded.name], tuple(channels.values)
    if id_column is not None:
        names = [name for name, _ in series]
        numeric = str(id_column.dtype) if pd.api.types.is_numeric_dtype(id_column) else None
        form = replace(form, long=True, id=str(id_column.name), id_type=numeric, channels=held)
    values = rows.drop(columns=ORDER).to_numpy(np.float64)
    table = Table(
        name=loaded.name,
        where=loaded.where,
        values=np.ascontiguousarray(values[:, : len(held)]),
        columns=held,
        times=None if stamps is None else in_seconds(rows.index.to_numpy()),
        step=step,
        series=tuple(Segment(each, *ab) for each, ab in zip(names, pairwise(ends), strict=True)),
        order=rows[ORDER].to_numpy(np.int64),
        form=form,
        source=loaded,
        label=channels.label,
        labels=None if channels.labels is None else np.ceil(values[:, -1]),
        categories=tuple(channels.categories),
        notes=tuple(reading.notes),
    )
    return replace(table, understood=tuple(_describe(table, times, counter)))


def _check_columns(frame: pd.DataFrame, also: Sequence[str], reading: Reading) -> pd.DataFrame:
    """Refuse no rows, names that are not there or there twice; lists and records become words."""
    if frame.empty:
        raise DataError(f"{reading.where} has no rows or no columns.")
    for name in frame.columns[frame.columns.duplicated()][:1]:
        raise reading.error(f"two columns are called {name!r}: rename one.")
    options = reading.options
    made = options.category or ()  # "weather=rain" is a channel that is made of "weather"
    channels = [n for n in (*(options.columns or ()), *also) if n.partition("=")[0] not in made]
    asked = (options.time, options.id, options.ignore, made, channels, (options.label or (),))
    for name in [name for names in asked for name in names or () if name]:
        if name not in frame.columns:
            held = list_names(frame.columns, 8)
            raise DataError(f"{reading.where} has no column {name!r}; it has {held}.")
    objects = [name for name in frame.columns if frame[name].dtype == object]
    nested = [n for n in objects if any(isinstance(c, list | dict | np.ndarray) for c in frame[n])]
    return frame.astype(dict.fromkeys(nested, str))


def in_seconds(stamps: np.ndarray) -> np.ndarray:
    """Dates `[T]` in seconds, or in nanoseconds where they have fractions of one."""
    whole = stamps.astype("datetime64[s]")
    return whole if (whole == stamps).all() else stamps.astype("datetime64[ns]")


def _describe(table: Table, times: Times | None, counter: pd.Series | None) -> list[str]:
    """Short lines on time, series, rows and channels."""
    rows = f"rows: {len(table.values):,}"
    inserted = int((table.order < 0).sum())
    if inserted:
        rows += f", {inserted:,} of them inserted because their times were missing"
    line = "time: none (--time-column names a column), rows are taken as evenly spaced"
    if counter is not None:
        line = f"time: column {counter.name!r} (--time-column) gives the order of rows only"
    if times is not None and table.times is not None:
        order = " (--date-order)" if times.form and "-%m-" in f"-{times.form}-" else ""
        step = f"step {table.step} (--frequency)" if table.step else "no regular step"
        first, last = table.form.write_times(np.sort(table.times)[[0, -1]])
        clock = "by the local clock" if times.local else "kept in UTC"
        zone = f"zone {times.zone} (--zone), {clock}" if times.zone else "no zone (--zone)"
        column = "the index" if table.form.indexed else f"column {' + '.join(times.columns)!r}"
        line = f"time: {column} (--time-column), read as {times.written}{order}, {step}, "
        line += f"{first} to {last}, {zone}"
    lines = [line]
    if table.form.long:
        lengths = [stop - start for _, start, stop in table.series]
        names = list_names([name for name, *_ in table.series], 12)
        lines.append(f"series ({len(lengths)}, by column {table.form.id!r}, --id): {names}")
        rows += f", {min(lengths):,} to {max(lengths):,} a series"
    names = list_names(table.names, 12)
    lines += [rows, f"channels ({len(table.names)}, --columns and --ignore choose): {names}"]
    return lines + ([f"labels: column {table.label!r} (--label)"] if table.label else [])


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
    columns = [clean_numbers(column, place, reading) for place, column in enumerate(values.T)]
    values = np.stack(columns, axis=1)
    series, order = (Segment(loaded.name, 0, len(values)),), np.arange(len(values))
    form = Form("tensor" if loaded.kind == "tensor" else "array", flat=array.ndim == 1)
    step, notes = options.frequency, tuple(reading.notes)
    table = Table(
        *(loaded.name, where, values, None, None, step, series, order, form, loaded), notes=notes
    )
    return replace(table, understood=tuple(_describe(table, None, None)))


def keep_present(source: Source, options: ReadOptions) -> ReadOptions:
    """Options without labels and ignored columns that new data do not hold."""
    held = list(getattr(source.content, "columns", ()))
    label = options.label if options.label in held else None
    ignore = tuple(name for name in options.ignore or () if name in held)
    return options.model_copy(update={"label": label, "ignore": ignore or None})


def _order_rows(
    rows: pd.DataFrame, series: Series, reading: Reading, grid: bool
) -> tuple[pd.DataFrame, list[int], str | None]:
    """Put rows series by series, in order of time and on a grid; without times as they come.

    Returns them, the borders between the series, and the step.
    """
    resample, step = reading.options.resample, reading.options.frequency
    check_frequency(step)
    check_frequency(resample)
    timed = isinstance(rows.index, pd.DatetimeIndex)
    if resample is not None and not timed:
        raise reading.error("there are no dates to resample by: --time-column names a column.")
    frames: Frames = {}
    happened: Counter[str] = Counter()
    for name, own in series:
        frame = rows.iloc[own]
        label = f"series {name!r}: " if len(series) > 1 else ""
        if timed and not frame.index.is_monotonic_increasing:
            happened["Rows were sorted by time"] += len(frame)
            frame = frame.sort_index(kind="stable")
        if timed:
            frame = _merge_duplicates(frame, label, happened, reading)
        if resample:
            first = frame[ORDER].resample(resample).first().fillna(-1)
            frame = frame.resample(resample).mean().assign(**{ORDER: first})
        frames[label] = frame
    for sentence, count in happened.items():
        reading.note(f"{sentence}: {count:,}.")
    if resample:
        reading.note(f"Rows were averaged into steps of {resample} (--resample).")
    long_enough = [each for each in frames.values() if len(each) >= FEWEST_ROWS]
    if timed and step is None and (resample or long_enough):
        steps = Counter(find_step(pd.DatetimeIndex(each.index)) for each in long_enough)
        step = resample or steps.most_common(1)[0][0]
    try:
        if timed and step is not None:
            frames, step = _lay_on_grid(frames, step, reading, grid)
    except DataError as error:
        if grid:
            raise
        said = str(error).removeprefix(f"{reading.where}: ")
        reading.note(f"Rows are taken in their order: {said}")
        step = None
    ends = np.cumsum([0, *map(len, frames.values())]).tolist()
    return pd.concat(frames.values()), ends, step


def _merge_duplicates(
    frame: pd.DataFrame, label: str, happened: Counter[str], reading: Reading
) -> pd.DataFrame:
    """Drop rows that repeat another; merge those of the same time as asked."""
    again = frame.index.duplicated()
    if not again.any():
        return frame
    same = frame.drop(columns=ORDER).reset_index().duplicated().to_numpy()
    if same.any():
        happened["Rows that repeat another were dropped"] += int(same.sum())
        frame, again = frame[~same], again[~same]
    how, index = reading.options.duplicates, pd.DatetimeIndex(frame.index)
    if not again.any() or reading.options.resample:
        return frame
    times, usual = index[again], pd.Series(index).diff().median()
    if how is None and usual <= pd.Timedelta(hours=1) and _are_clock_changes(times):
        how, said = "mean", "(--zone or --duplicates decides otherwise)"
        happened[f"Rows of an hour that the clock showed twice were averaged {said}"] += again.sum()
    elif how in (None, "error"):
        place = int(np.flatnonzero(again)[0])
        first, second = sorted(int(row) + 1 for row in frame[ORDER].iloc[[place - 1, place]])
        merges = "--duplicates mean or --duplicates first merges them"
        in_order = f"{flag('ignore', reading.time)} takes rows in their order"
        further = f"--time-column {reading.time},… joins further columns of the time"
        helps = [merges, further, "--id names the columns of several series", in_order]
        if 2 * len(times) >= len(frame):  # merging would lose most rows
            helps = helps[::-1]
        raise reading.error(
            f"{label}rows {first} and {second} have the same time, {index[place]} "
            f"({len(times):,} such rows): {'; '.join(helps)}."
        )
    else:
        happened[f"Rows of the same time were merged ({how})"] += again.sum()
    if how == "first":
        return frame[~again]
    return frame.groupby(level=0).mean().assign(**{ORDER: frame.loc[~again, ORDER]})


def _are_clock_changes(times: pd.DatetimeIndex) -> bool:
    """Whether times are all those of Sunday nights when clocks are changed."""
    nights = (times.dayofweek == 6) & (times.hour < 4) & times.month.isin([3, 4, 9, 10, 11])
    days = pd.Series(times.normalize().unique()).diff().dropna() / pd.Timedelta(days=1)
    return bool(len(times) and nights.all() and (days > 100).all())


def _lay_on_grid(frames: Frames, step: str, reading: Reading, insert: bool) -> tuple[Frames, str]:
    """Insert the rows that a grid lacks, or only say which; also the usual name of the step."""
    laid: Frames = {}
    missing: dict[str, pd.DatetimeIndex] = {}
    jitter = 0.0
    for label, frame in frames.items():
        grid, moved = _find_grid(frame, label, step, reading)
        jitter = max(jitter, float(np.abs((moved - frame.index).total_seconds()).max()))
        full = frame.set_axis(moved).reindex(grid)
        laid[label] = full.assign(**{ORDER: full[ORDER].fillna(-1)})
        if len(grid) > len(moved):
            missing[label] = grid.difference(moved)
    if jitter:
        where = "were moved there" if insert else "are left there (--resample)"
        reading.note(f"Times lay up to {jitter:.3g} s beside their grid and {where}.")
    asked = reading.options.frequency or reading.options.resample
    if missing:
        most = max(missing, key=lambda label: len(missing[label]))
        count, total = (sum(map(len, each.values())) for each in (missing, laid))
        longer = _propose_step(pd.DatetimeIndex(frames[most].index))
        keeps = f"{flag('frequency', step)} keeps the grid with gaps"
        averages = f"{flag('resample', longer)} averages rows into longer steps"
        said = f"{count:,} of {total:,} rows on the grid of step {step} are missing "
        said += f"(first at {missing[most][0]})"
        if count >= MOST_INSERTED * total and not asked:
            raise reading.error(f"{said}, half of all or more: {averages}, {keeps}.")
        said += " and are gaps" if insert else ""
        if count > MANY_INSERTED * total and not asked:
            helps = averages if seconds(longer) > seconds(step) else keeps
            said += f"; that is {count / total:.0%} of all: {helps}"
        if seconds(step) <= 3600 and all(map(_are_clock_changes, missing.values())):
            said += "; clocks are put forward in such nights: --zone names the time zone"
        reading.note(f"{said}.")
    longest = pd.DatetimeIndex(max(laid.values(), key=len).index)
    usual = pd.infer_freq(longest) if len(longest) >= FEWEST_ROWS else None
    return (laid if insert else frames), reading.options.frequency or usual or step


def _find_grid(
    frame: pd.DataFrame, label: str, step: str, reading: Reading
) -> tuple[pd.DatetimeIndex, pd.DatetimeIndex]:
    """The grid of a series, and its times there: those a little beside the grid are moved."""
    index = pd.DatetimeIndex(frame.index)
    if len(index) < 2:
        return index, index

    def row(place: int) -> str:
        return f"{index[place]} (row {int(frame[ORDER].iloc[place]) + 1})"

    gaps = np.diff(index.asi8)
    if (index[-1] - index[0]).total_seconds() / seconds(step) > FAR_ROWS * len(index) + 1000:
        far = int(np.argmax(gaps))
        far += far + 1 > len(index) / 2
        raise reading.error(f"{label}{row(far)} is far from the other times: correct that row.")
    grid = pd.date_range(index[0], index[-1], freq=step)
    on_grid = index.isin(grid)
    if on_grid.all():
        return grid, index
    usual = pd.Timedelta(float(np.median(gaps)), index.unit)
    near = min(ROUND_STEPS, key=lambda each: abs(np.log(seconds(each) / usual.total_seconds())))
    size = pd.Timedelta(seconds=seconds(near))
    if abs(size / usual - 1) < NEAR_STEP and not reading.options.frequency:
        moved = index.round(near)
        if moved.is_unique and np.abs(moved - index).max() < LARGEST_JITTER * size:
            return pd.date_range(moved[0], moved[-1], freq=size), moved
    raise reading.error(
        f"{label}times are irregular: {int((~on_grid).sum()):,} of {len(index):,} rows are off "
        f"the grid of the commonest step {step} (first {row(int(np.argmin(on_grid)))}): "
        f"{flag('resample', _propose_step(index))} averages rows into even steps; if there are "
        "several series, --id names their column."
    )


def _propose_step(index: pd.DatetimeIndex) -> str:
    """The shortest round step of which most hold a row."""
    nanos = index.as_unit("ns").asi8
    for step in ROUND_STEPS:
        held = np.unique(nanos // round(seconds(step) * 1e9))
        if len(held) > MOSTLY_HELD * (held[-1] - held[0] + 1):
            break
    return {"30D": "MS", "7D": "W"}.get(step, step)
