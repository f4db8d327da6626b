"""A file or frame, read once into one `Table`: values, times, series, and what was understood."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sacm.data.columns import LARGEST, Channels, Reading, flag, read_channels, some
from sacm.data.datasets import Form, Kind, Segment
from sacm.data.grid import Rows, check_frequency, find_ids, order_rows, series_rows
from sacm.data.text import decode, read_text, turn_wide
from sacm.data.times import Times, find_times
from sacm.errors import DataError
from sacm.settings import ReadOptions

STDIN = "-"
FILE_COLUMN = "file"
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".feather", ".jsonl")
LONG_TABLE = ("unique_id", "ds", "y")  # id, time and channel as other libraries name them
MOST_NAMES = 12  # names printed in one line, at most


class Source(NamedTuple):
    """What a user passed, in memory."""

    content: np.ndarray | pd.DataFrame  # a frame has text as column names
    name: str
    where: str  # what errors call it
    kind: Kind  # of the object that results are given back as
    id: str | None = None  # column that tells series apart, if the source names it
    separator: str | None = None  # of the fields of a text
    notes: tuple[str, ...] = ()


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


def load_source(
    source: Any, options: ReadOptions | None = None, *, name: str | None = None
) -> Source:
    """Load a file, folder, array, tensor or data frame, each of them once.

    Args:
        source: A text (CSV and the like), JSON, Excel, Parquet, Feather, `.npy` or `.npz` file,
            also gzipped or zipped; a folder of such files, a series each; "-" for rows that are
            piped in; a pandas or polars frame or series; an array or tensor `[T]` or `[T, C]`;
            nested lists. A `Source` is returned as it is.
        options: `sheet` and `encoding` are used here.
        name: A short name. Default: that of the file without its ending, or "data".
    """
    options = options or ReadOptions()
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        from sacm.data.formats import from_object, kind_of

        where = name or "the data"
        return Source(from_object(source, where), name or "data", where, kind_of(source))
    path = Path(source)
    if str(source) == STDIN:
        content = _read_stdin(sys.stdin)
        return _parse(content, name or "stdin", "", Reading("standard input", options))
    if path.is_dir() and str(source):
        return _read_folder(path, name or path.name, options)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {str(error.strerror).lower()}.") from error
    if not content:
        raise DataError(f"{path} is empty.")
    if path.suffix in (".npy", ".npz"):
        from sacm.data.formats import read_array

        return Source(read_array(path), name or path.stem, str(source), "pandas")
    return _parse(content, name or path.stem, path.suffix.lower(), Reading(str(source), options))


def _parse(content: bytes, name: str, suffix: str, reading: Reading) -> Source:
    """The table in the content of a file, by its first bytes."""
    from sacm.data import formats

    content = _unpack(content, reading.where)
    if content[:4] == b"PK\x03\x04" and not suffix.startswith(".xls"):
        content = _unpack(formats.unzip(content, reading), reading.where)
    start = content[:4]
    if start == b"\xd0\xcf\x11\xe0" or suffix.startswith(".xls"):
        frame = formats.read_excel(content, reading)
    elif start in (b"PAR1", b"ARRO", b"FEA1"):
        frame = formats.read_arrow(content, reading)
    else:
        text = decode(content, reading)
        json_like = text.lstrip()[:1] in ("{", "[")
        frame = formats.read_json(text, reading) if json_like else read_text(text, reading)
    notes = tuple(reading.notes)
    return Source(frame, name, reading.where, "pandas", None, reading.separator, notes)


def _unpack(content: bytes, where: str) -> bytes:
    """The content of a gzipped file; any other as it is."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} is a damaged gzip file.") from error


@lru_cache(maxsize=1)
def _read_stdin(stream: Any) -> bytes:
    """The table that is piped in, kept because a stream can be read only once."""
    content: bytes = b"" if stream is None or stream.isatty() else stream.buffer.read()
    if not content.strip():
        raise DataError("Standard input is empty: pipe a table into the command.")
    return content


def _read_folder(folder: Path, name: str, options: ReadOptions) -> Source:
    """The files of a folder, one below the other, with their names in the column "file"."""
    held = sorted(each for each in folder.iterdir() if each.name.lower().endswith(ENDINGS))
    files = [each for each in held if each.is_file() and not each.name.startswith(".")]
    if not files:
        raise DataError(f"{folder} is a folder: name a file, or a folder of CSV files.")
    sources = [load_source(path, options) for path in files]
    frames: list[Any] = [source.content for source in sources]
    names = sorted(frames[0].columns)
    for path, frame in zip(files, frames, strict=True):
        if sorted(frame.columns) != names or FILE_COLUMN in names:
            raise DataError(
                f"{folder} is a folder of files with different columns, or with a column "
                f"{FILE_COLUMN!r}: {path.name} has {some(frame.columns)}, {files[0].name} has "
                f"{some(names)}."
            )
    stems = [path.name.removesuffix(".gz").rpartition(".")[0] for path in files]
    joined = pd.concat(frames, keys=stems, names=[FILE_COLUMN]).reset_index(0)
    notes = tuple(dict.fromkeys(note for source in sources for note in source.notes))
    joined, last = joined.reset_index(drop=True), sources[-1].separator
    return Source(joined, name, str(folder), "pandas", FILE_COLUMN, last, notes)


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
    frame = loaded.content
    reading = Reading(loaded.where, options, loaded.separator, list(loaded.notes))
    _check_columns(frame, also, reading)
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
    counter = [first] if saved and len(frame.columns) > 1 else []
    wanted = [*(columns or ()), *also]
    skip = [*wanted, *(options.category or ())]
    times, others = find_times(frame.drop(columns=counter), reading, time=time, skip=skip, ids=ids)
    stamps = None if times is None else times.stamps
    if options.zone is not None and stamps is None:
        raise DataError(
            f"{loaded.where} has no dates, so it has no zone: name their column with "
            f"{flag('time')}."
        )
    frame = frame.reset_index(drop=True)
    used = {*counter, *(times.columns if times is not None else ())}
    used |= {name for name in others if name not in wanted}
    if not ids and stamps is not None:
        ids = find_ids(frame, stamps, [*used, *skip, options.label or ""], reading)
    id_column, series = series_rows(frame, ids, reading)
    channels = read_channels(
        frame.drop(columns=list(used | set(ids)), errors="ignore"),
        reading,
        stamps=stamps,
        timed=times is not None,
        columns=columns,
        also=also,
        labelled=labelled,
    )
    if times is not None and times.counter is not None:
        reading.note(
            f"The time column {times.columns[0]!r} only counts: it gives the order of rows."
        )
    unused = times is None or bool(times.columns)
    if unused and index.inferred_type not in ("integer", "datetime64", "period"):
        reading.note("The index of the frame is not used: it holds no dates, or a column does.")
    rows = _order(channels, times, series, reading, grid=grid)
    return _assemble(loaded, channels, times, rows, series, id_column, reading)


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


def _order(
    channels: Channels,
    times: Times | None,
    series: list[tuple[str, np.ndarray]],
    reading: Reading,
    *,
    grid: bool,
) -> Rows:
    """Values, and labels as a last column, in order of time on the grid."""
    labels = [] if channels.labels is None else [channels.labels]
    values = np.stack([*channels.values.values(), *labels], axis=1)
    if times is not None and times.stamps is not None:
        return order_rows(values, times.stamps, series, reading, grid=grid)
    options = reading.options
    if options.resample is not None:
        raise reading.error(f"there are no dates to resample by: {flag('time')} names a column.")
    check_frequency(options.frequency)
    order = np.concatenate([rows for _, rows in series])
    ends = [0, *np.cumsum([len(rows) for _, rows in series]).tolist()]
    return Rows(values[order], None, order, ends, options.frequency if times is None else None)


def _assemble(
    loaded: Source,
    channels: Channels,
    times: Times | None,
    rows: Rows,
    series: list[tuple[str, np.ndarray]],
    ids: pd.Series | None,
    reading: Reading,
) -> Table:
    """The table, with the form that the data came in and the lines that say how it was read."""
    count, form = len(channels.values), Form(loaded.kind)
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
        if times.counter is not None:
            ends = {name: times.counter[own[-2:]].tolist() for name, own in series if len(own) > 1}
            counters = {name: (last, last - before) for name, (before, last) in ends.items()}
            form = replace(form, counters=counters)
    names = [loaded.name]
    if ids is not None:
        names = [name for name, _ in series]
        numeric = str(ids.dtype) if pd.api.types.is_numeric_dtype(ids) else None
        held = tuple(channels.values)
        form = replace(form, long=True, id=str(ids.name), id_type=numeric, channels=held)
    borders = zip(names, pairwise(rows.ends), strict=True)
    table = Table(
        name=loaded.name,
        where=loaded.where,
        values=np.ascontiguousarray(rows.values[:, :count]),
        columns=tuple(channels.values),
        times=None if rows.stamps is None else in_seconds(rows.stamps),
        step=rows.step,
        series=tuple(Segment(name, start, stop) for name, (start, stop) in borders),
        order=rows.order,
        form=form,
        source=loaded,
        label=channels.label,
        labels=None if channels.labels is None else np.ceil(rows.values[:, count]),
        categories=tuple(channels.categories),
        notes=tuple(reading.notes),
    )
    ignored = {"not wanted": list(reading.options.ignore)} if reading.options.ignore else {}
    left_out = {**ignored, **channels.left_out}
    return replace(table, understood=tuple(_describe(table, times, left_out)))


def in_seconds(stamps: np.ndarray) -> np.ndarray:
    """Dates `[T]` in seconds, or in nanoseconds where they have fractions of one."""
    whole = stamps.astype("datetime64[s]")
    return whole if (whole == stamps).all() else stamps.astype("datetime64[ns]")


def _describe(table: Table, times: Times | None, left_out: Mapping[str, list[str]]) -> list[str]:
    """Short lines on time, series, rows, channels and what was left out."""
    rows = f"rows: {len(table.values):,}"
    if table.inserted:
        rows += f", {table.inserted:,} of them inserted because their times were missing"
    lines = [_describe_time(table, times)]
    if table.form.long:
        lengths = [stop - start for _, start, stop in table.series]
        names = some([name for name, *_ in table.series], MOST_NAMES)
        lines.append(f"series ({len(lengths)}, by column {table.form.id!r}, --id): {names}")
        rows += f", {min(lengths):,} to {max(lengths):,} a series"
    names = some(table.names, MOST_NAMES)
    lines += [rows, f"channels ({len(table.names)}, --columns and --ignore choose): {names}"]
    if table.label is not None:
        lines.append(f"labels: column {table.label!r} (--label)")
    return lines + [f"left out, {reason}: {some(names)}" for reason, names in left_out.items()]


def _describe_time(table: Table, times: Times | None) -> str:
    """One line on the time: where it was found, how it was read, its step and its span."""
    if times is None:
        return "time: none (--time-column names a column), rows are taken as evenly spaced"
    columns = "the index" if not times.columns else f"column {' + '.join(times.columns)!r}"
    order = " (--date-order)" if times.form and "-%m-" in f"-{times.form}-" else ""
    parts = [f"time: {columns} (--time-column)", f"read as {times.written}{order}"]
    if table.times is None or not len(table.times):
        return ", ".join([*parts, "used for the order of rows only"])
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


def _from_array(loaded: Source, array: np.ndarray, options: ReadOptions) -> Table:
    """A table without names and times."""
    where = loaded.where
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
    notes = []
    for place in range(values.shape[1]):
        column = np.asarray(values[:, place])
        infinite = np.isinf(column)
        wrong = np.flatnonzero((np.abs(column) > LARGEST) & ~infinite)
        if len(wrong):
            cell = f"row {wrong[0] + 1} of column {place} is {column[wrong[0]]:g}"
            raise DataError(f"{where}: {cell}, which is too large.")
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
        form=Form("tensor" if loaded.kind == "tensor" else "array", flat=array.ndim == 1),
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
