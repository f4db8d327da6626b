"""Frames, arrays, tensors and files as subjects to inspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sacm.data.tables.columns import coarse_note, numbers
from sacm.data.tables.panel import Panel, read_table_or_panel
from sacm.data.tables.source import Source, load_source
from sacm.data.tables.table import Table
from sacm.errors import DataError
from sacm.quality.give_back import give_array, give_frame
from sacm.quality.subject import Subject


def from_source(data: Any, reading: Mapping[str, Any]) -> Subject:
    """A file or an object in memory, read with options by name; it may hold several series."""
    options = dict(reading)
    loaded = load_source(_as_array(data), decimal=options.pop("decimal", None))
    source, notes = _without_infinity(loaded)
    if not isinstance(source.content, np.ndarray) and 0 in source.content.shape:
        raise DataError(f"{source.where} has no rows or no columns.")
    found = read_table_or_panel(source, grid=False, irregular="keep", **options)
    if isinstance(found, Panel):
        return _from_panel(data, source, found, notes)
    return _from_table(data, source, found, notes)


def _from_table(data: Any, source: Source, table: Table, notes: tuple[str, ...]) -> Subject:
    values, coarse = _read_exactly(source, table)
    notes += _note_on_times(table.times)
    rows = range(len(values))

    def restore(new: np.ndarray, changed: np.ndarray) -> Any:
        ordered, marks = np.empty_like(new), np.empty_like(changed)
        ordered[table.order], marks[table.order] = new, changed
        if isinstance(source.content, np.ndarray):
            return give_array(data, source.content, ordered, marks)
        return give_frame(data, source, table.names, ordered, marks)

    return Subject(
        name=table.name,
        values=values,
        columns=table.names,
        pieces=(rows,),
        labels=(table.name,),
        starts=(0,),
        train=(rows,),
        times=table.times,
        restore=restore,
        notes=(*(note for note in table.notes if note != coarse), *notes),
        understood=tuple(table.understood()),
    )


def _from_panel(data: Any, source: Source, panel: Panel, notes: tuple[str, ...]) -> Subject:
    frame: Any = source.content
    if not set(panel.names) <= set(frame.columns):
        raise DataError(f"{source.where} holds a series in every row: turn it into columns first.")
    exact = np.stack([numbers(frame[name], source.where) for name in panel.names], axis=1)
    kept = [table.order >= 0 for table in panel.series]
    own = [
        rows[table.order[keep]]
        for rows, table, keep in zip(panel.rows, panel.series, kept, strict=True)
    ]
    order = np.concatenate(own)
    ends = np.cumsum([0, *map(len, own)])
    pieces = tuple(range(int(a), int(b)) for a, b in pairwise(ends))
    stamps = [table.times for table in panel.series]
    times = [s[keep] for s, keep in zip(stamps, kept, strict=True) if s is not None]

    def restore(new: np.ndarray, changed: np.ndarray) -> Any:
        ordered, marks = np.empty_like(new), np.empty_like(changed)
        ordered[order], marks[order] = new, changed
        return give_frame(data, source, panel.names, ordered, marks)

    return Subject(
        name=panel.name,
        values=exact[order],
        columns=panel.names,
        pieces=pieces,
        labels=tuple(table.name for table in panel.series),
        starts=(0,) * len(pieces),
        train=pieces,
        times=np.concatenate(times) if len(times) == len(stamps) else None,
        restore=restore,
        notes=(*panel.notes, *notes),
        understood=tuple(panel.understood()),
    )


def _read_exactly(source: Source, table: Table) -> tuple[np.ndarray, str | None]:
    """Values in order of time in the precision in which they came, and a note that is void then.

    In float32 a small change at a high level is lost, and a healthy sensor would look stuck.
    """
    content = source.content
    if isinstance(content, np.ndarray):
        if content.dtype.itemsize < 8 and content.dtype.kind == "f":
            return table.values, None
        values = np.asarray(content, np.float64).reshape(table.values.shape)
        return values, coarse_note(content)
    channels = content[list(table.names)]
    columns = [numbers(channels[name], source.where) for name in table.names]
    return np.stack(columns, axis=1)[table.order], coarse_note(channels)


def _as_array(data: Any) -> Any:
    """Lists in full precision; anything else as it is."""
    if isinstance(data, list | tuple):
        try:
            return np.asarray(data, np.float64)
        except (TypeError, ValueError):  # said in a sentence where sources are loaded
            return data
    return data


def _without_infinity(source: Source) -> tuple[Source, tuple[str, ...]]:
    """The source with NaN for infinite values, and a note if there were any."""
    content = source.content
    if isinstance(content, np.ndarray):
        if content.dtype.kind != "f" or not (infinite := np.isinf(content)).any():
            return source, ()
        clean: Any = np.where(infinite, content.dtype.type(np.nan), content)
        return source._replace(content=clean), _note_on(int(infinite.sum()))
    found = {name: np.isinf(content[name]) for name in _float_columns(content)}
    found = {name: marks for name, marks in found.items() if marks.any()}
    if not found:
        return source, ()
    clean = content.copy(deep=False)
    for name, marks in found.items():
        clean[name] = content[name].mask(marks)
    return source._replace(content=clean), _note_on(sum(int(m.sum()) for m in found.values()))


def _float_columns(frame: Any) -> Sequence[str]:
    """Names of plain columns of floating-point numbers, those that occur once."""
    if not frame.columns.is_unique:
        return ()
    return [
        name
        for name, kind in frame.dtypes.items()
        if isinstance(kind, np.dtype) and kind.kind == "f"
    ]


def _note_on(count: int) -> tuple[str, ...]:
    """A note on infinite values."""
    return (f"{count:,} infinite value{'s count' if count > 1 else ' counts'} as missing.",)


def _note_on_times(times: np.ndarray | None) -> tuple[str, ...]:
    """A note on rows that are not evenly spaced in time."""
    if times is None or len(times) < 3:
        return ()
    steps = np.diff(times)
    usual = np.median(steps.astype(np.int64))
    wide = np.flatnonzero(steps.astype(np.int64) > 1.5 * usual)
    if not len(wide):
        return ()
    places = f"{len(wide):,} place{'s' if len(wide) > 1 else ''}"
    return (
        f"Rows are further apart in time than usual at {places} (first after {times[wide[0]]}); "
        "they are taken as evenly spaced, and rows that may be missing are not counted.",
    )
