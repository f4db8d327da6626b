"""One table of a user, read once: values, times, labels, and what was understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sacm.data.gaps import Policy, fill
from sacm.data.tables.columns import (
    check_present,
    check_unique_names,
    coarse_note,
    from_array,
    matrix,
)
from sacm.data.tables.date_text import DateOrder
from sacm.data.tables.dates import Times, read_times
from sacm.data.tables.form import Form
from sacm.data.tables.number_text import Decimal
from sacm.data.tables.roles import LeftOut, pick_channels
from sacm.data.tables.source import Source, load_source
from sacm.data.tables.time_column import TimedFrame, split_time
from sacm.data.tables.timeline import Irregular, timeline
from sacm.data.tables.understood import describe_left_out, describe_time, shorten
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a file, a frame or an array, in order of time.

    Attributes:
        name: A short name.
        where: What errors call the table.
        values: `[T, C]` float32, NaN where a value is missing.
        columns: Names of the C channels; None for an array, whose columns have none.
        times: `[T]` datetime64, None without dates.
        frequency: The time step as a pandas alias, if the rows lie on a grid.
        order: `[T]` position of each row in the user's table, -1 for an inserted row.
        form: How the data came in.
        notes: What was found, guessed or repaired, a sentence each.
        labels: `[T]` float64, the column of labels, None if there is none.
        label: The name of that column.
        left_out: Columns that are no channels, and why.
        written: How the times were written, in words.
        observed: `[T, C]` False where a gap was filled; None if that was not asked for.
    """

    name: str
    where: str
    values: np.ndarray
    columns: tuple[str, ...] | None
    times: np.ndarray | None
    frequency: str | None
    order: np.ndarray
    form: Form
    notes: tuple[str, ...] = ()
    labels: np.ndarray | None = None
    label: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    written: str = ""
    observed: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        name: str | None = None,
        time: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        ignore: str | Sequence[str] = (),
        label: str | None = None,
        labelled: bool = False,
        grid: bool = True,
        irregular: Irregular = "error",
        frequency: str | None = None,
        date_order: DateOrder | None = None,
        zone: str | None = None,
        decimal: Decimal | None = None,
        also: Sequence[str] = (),
    ) -> Self:
        """Read a table.

        Args:
            source: A CSV, Parquet, `.npy` or `.npz` file, an array or tensor `[T]` or `[T, C]`, a
                pandas or polars frame, or a `Source` that was loaded before.
            name: A short name. Default: that of the file, or "data".
            time: The time column, or several that make the time together, such as date and time.
                Default: found by name or content.
            columns: The channels, in this order. Default: all columns but the time, labels,
                counters and parts of the calendar.
            ignore: Columns to leave out.
            label: The column of labels. Default: found by name.
            labelled: Whether labels are usual, so that no note names a column called label.
            grid: Whether to insert the rows that a regular grid lacks.
            irregular: "error" refuses times on no grid, "keep" takes them as they are.
            frequency: The time step as a pandas alias. Default: found from the times.
            date_order: How to read dates such as 01/02/03: "day first", "month first" or
                "year first". Default: as needs the least sorting and filling.
            zone: The time zone of times that name none, and in which all are given back.
            decimal: "," or ".", the sign before the fraction of numbers in text; the other sign
                then separates thousands. Default: a point, and no thousands.
            also: Columns that are wanted besides the channels, whatever they look like.

        Returns:
            The table, in order of time.

        Raises:
            DataError: The table cannot be read, or a column asked for is not there.
            ArgumentError: `frequency` is unknown.

        Example:
            >>> Table.read(np.zeros((5, 2))).values.shape
            (5, 2)
        """
        loaded = load_source(source, name, decimal)
        if isinstance(loaded.content, np.ndarray):
            return cls._from_array(loaded, loaded.content, frequency)
        where = loaded.where
        check_unique_names(loaded.content, where)
        chosen = [columns] if isinstance(columns, str) else columns
        frame = drop_columns(loaded.content, ignore, where)
        timed = split_time(frame, time, where, [*(chosen or ()), *also])
        check_zone(zone, timed, where)
        times = None
        if timed.time is not None:
            times = read_times(timed.time, where, order=date_order, zone=zone)
        line = timeline(
            times, len(frame), where=where, grid=grid, frequency=frequency, irregular=irregular
        )
        stamps = None if times is None else times.by_clock
        picked = pick_channels(
            timed.rest, stamps, chosen, label, where, labelled=labelled, also=also
        )
        values = matrix(picked.channels, where)
        notes = (
            *loaded.notes,
            *line.notes,
            *timed.notes,
            *picked.notes,
            coarse_note(picked.channels),
        )
        return cls(
            name=loaded.name,
            where=where,
            values=reindex_rows(values, line.rows),
            columns=tuple(str(column) for column in picked.channels.columns),
            times=line.timestamps,
            frequency=line.frequency,
            order=line.rows,
            form=form_of(loaded, timed, times),
            notes=tuple(note for note in notes if note),
            labels=None if picked.labels is None else reindex_rows(picked.labels, line.rows),
            label=picked.label,
            left_out=(*(LeftOut(name, "not wanted") for name in as_list(ignore)), *picked.left_out),
            written="" if times is None else times.written,
        )

    @classmethod
    def _from_array(cls, loaded: Source, array: np.ndarray, frequency: str | None) -> Self:
        """A table without names and times."""
        values = from_array(array, loaded.where)
        note = coarse_note(array)
        return cls(
            name=loaded.name,
            where=loaded.where,
            values=values,
            columns=None,
            times=None,
            frequency=frequency,
            order=np.arange(len(values)),
            form=Form("tensor" if loaded.kind == "tensor" else "array", flat=array.ndim == 1),
            notes=(note,) if note else (),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the C channels; their positions where they have none."""
        return self.columns or tuple(str(place) for place in range(self.values.shape[1]))

    def understood(self) -> list[str]:
        """Say in short lines how the table was read: time, channels, labels, columns left out."""
        rows = f"rows: {len(self.values):,}"
        inserted = int((self.order < 0).sum())
        if inserted:
            rows += f", {inserted:,} of them inserted because their times were missing"
        return [
            describe_time(self.form, self.written, self.frequency, self.times),
            rows,
            f"channels ({len(self.names)}, columns= and ignore= choose): {shorten(self.names)}",
            *([f"labels: column {self.label!r} (label=)"] if self.label is not None else []),
            *describe_left_out(self.left_out),
        ]

    def fill(self, pieces: Iterable[range], policy: Policy) -> Self:
        """Treat missing values by `policy`, each piece of rows by itself.

        Args:
            pieces: Ranges of rows; nothing is filled in from a later one.
            policy: "interpolate", "mask" (the same, and marked in `observed`) or "error".

        Returns:
            The same table without gaps, with a note if there were any.

        Raises:
            DataError: A value or a row is missing and `policy` is "error", or a column is empty.
        """
        absent = np.flatnonzero(self.order < 0)
        if policy == "error" and len(absent) and self.times is not None:
            raise DataError(f"{self.where}: there is no row for {self.times[absent[0]]}.")
        found = fill(self.values, pieces, policy=policy, columns=self.names, where=self.where)
        notes = (*self.notes, found.note) if found.note else self.notes
        return replace(self, values=found.values, observed=found.observed, notes=notes)

    def cut(self, start: int, stop: int | None = None) -> Self:
        """Some of the rows."""
        rows = slice(start, stop)
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("values", "times", "order", "labels", "observed")
        }
        return replace(self, **parts)


def check_zone(zone: str | None, timed: TimedFrame, where: str) -> None:
    """Refuse a zone for a table that tells no time."""
    if zone is not None and timed.time is None:
        raise DataError(f"{where} has no time column, so it has no zone: time= names one.")


def as_list(names: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else list(names)


def drop_columns(frame: pd.DataFrame, ignore: str | Sequence[str], where: str) -> pd.DataFrame:
    """The frame without the columns to ignore."""
    check_present(frame, as_list(ignore), where)
    return frame.drop(columns=as_list(ignore)) if ignore else frame


def reindex_rows(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows in their places on the grid; NaN where there is none."""
    result: np.ndarray = values[rows]
    result[rows < 0] = np.nan
    return result


def form_of(loaded: Source, timed: TimedFrame, times: Times | None) -> Form:
    """The form of a table that came as a frame or a file."""
    if times is None:
        return Form(loaded.kind)
    assert not isinstance(loaded.content, np.ndarray)
    unnamed = timed.indexed and loaded.content.index.name is None
    return Form(
        loaded.kind,
        time=None if unnamed else times.name,
        indexed=timed.indexed,
        zone=times.zone,
        local=times.local,
        style=times.style,
        counters=counters_of({"": times}),
    )


def counters_of(series: dict[str, Times]) -> dict[str, tuple[float, float]]:
    """Last value and step of the counter of each series; nothing if one of them has dates."""
    found: dict[str, tuple[float, float]] = {}
    for name, times in series.items():
        if times.counter is None or len(times.counter) < 2:
            return {}
        last, before = float(times.counter[-1]), float(times.counter[-2])
        found[name] = (last, last - before)
    return found
