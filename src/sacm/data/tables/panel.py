"""Several series in one table, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sacm.data.tables.columns import check_present, coarse_note, matrix
from sacm.data.tables.date_text import DateOrder
from sacm.data.tables.dates import Times, read_times
from sacm.data.tables.form import Form
from sacm.data.tables.ids import find_ids, is_usual, join_ids, turn_rows
from sacm.data.tables.roles import LeftOut, pick_channels
from sacm.data.tables.source import Source, load_source
from sacm.data.tables.table import Table, as_list, counters_of, drop_columns, reindex_rows
from sacm.data.tables.time_column import find_time, split_time, time_index
from sacm.data.tables.timeline import Irregular, timeline
from sacm.data.tables.understood import describe_left_out, describe_time, shorten
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

USUAL_CHANNEL, USUAL_TIME = "y", "ds"


@dataclass(frozen=True, eq=False)
class Panel:
    """Several series, each a `Table` with the same channels.

    Attributes:
        name: A short name.
        where: What errors call the whole table.
        series: The tables, in the order in which their ids occur.
        rows: For each series the positions of its rows in the user's table, before sorting.
        form: How the data came in.
        notes: What was found or guessed for the table as a whole; each series has its own.
        left_out: Columns that are not used, and why.
        written: How the times were written, in words.
    """

    name: str
    where: str
    series: tuple[Table, ...]
    rows: tuple[np.ndarray, ...]
    form: Form
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    written: str = ""

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        name: str | None = None,
        id: str | Sequence[str] | None = None,
        time: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        ignore: str | Sequence[str] = (),
        label: str | None = None,
        grid: bool = True,
        irregular: Irregular = "error",
        frequency: str | None = None,
        date_order: DateOrder | None = None,
        zone: str | None = None,
        also: Sequence[str] = (),
    ) -> Self:
        """Read a table of several series, such as `unique_id, ds, y`.

        Args:
            source: A file, a folder of files, a frame, or a `Source` that was loaded before.
            name: A short name. Default: that of the file, or "data".
            id: The column that tells the series apart, or several that do together. Default:
                found, see `find_ids`.
            time: The time column, or several that make the time together. Default: found.
            columns: The channels. Default: `y` of a table `unique_id, ds, y`, otherwise all columns
                that are nothing else.
            ignore: Columns to leave out.
            label: The column of labels, which is no channel. Default: found by name.
            grid: Whether to insert the rows that a regular grid lacks.
            irregular: "error" refuses times on no grid, "keep" takes them as they are.
            frequency: The time step as a pandas alias. Default: found for each series.
            date_order: How to read dates such as 01/02/03. Default: as needs the least sorting.
            zone: The time zone of times that name none.
            also: Columns that are wanted besides the channels, whatever they look like.

        Returns:
            The series in order of time, each on its own grid.

        Raises:
            DataError: A row has no id, or one of the series cannot be read.
        """
        loaded = load_source(source, name)
        assert not isinstance(loaded.content, np.ndarray)
        where = loaded.where
        frame = drop_columns(loaded.content, ignore, where).reset_index(drop=True)
        ids = as_list(id or find_ids(loaded, time) or ())
        check_present(frame, ids, where)
        frame, key = join_ids(frame, ids, where)
        frame, turned = turn_rows(frame, key, time)
        usual = is_usual(frame) and key == "unique_id" and time is None
        chosen = [USUAL_CHANNEL] if usual and columns is None else columns
        if time is None and not usual:
            time = find_time_in_one(frame, key, as_list(chosen or ())) or None
        timed = split_time(
            frame.drop(columns=key),
            USUAL_TIME if usual else time,
            where,
            [*as_list(chosen or ()), *also],
        )
        groups = frame[key]
        times = None
        if timed.time is not None:
            times = read_times(timed.time, where, groups, date_order, zone)
        picked = pick_channels(
            timed.rest,
            None if times is None else times.by_clock,
            None if chosen is None else as_list(chosen),
            label,
            where,
            also=also,
        )
        rows = rows_of_series(groups)
        found = Channels(loaded, picked.channels, times)
        series = tuple(
            found.one_series(one, own, grid=grid, irregular=irregular, frequency=frequency)
            for one, own in rows
        )
        unused = [one.name for one in picked.left_out] if chosen is not None else []
        return cls(
            name=loaded.name,
            where=where,
            series=series,
            rows=tuple(own for _, own in rows),
            form=panel_form(loaded.kind, groups, times, rows, tuple(picked.channels.columns)),
            notes=(
                *loaded.notes,
                *((f"Columns not used: {', '.join(unused)}.",) if usual and unused else ()),
                *(
                    id_note(key, len(rows))
                    if id is None and loaded.id is None and not usual
                    else ()
                ),
                *turned,
                *(() if times is None else times.notes),
                *timed.notes,
                *picked.notes,
            ),
            left_out=(*(LeftOut(one, "not wanted") for one in as_list(ignore)), *picked.left_out),
            written="" if times is None else times.written,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the channels of every series."""
        return self.series[0].names

    def understood(self) -> list[str]:
        """Say in short lines how the table was read: time, series, columns left out."""
        stamps = [one.times for one in self.series if one.times is not None]
        ends = np.sort([place for own in stamps for place in (own.min(), own.max())])
        span = ends if len(stamps) == len(self.series) else None
        lengths = [len(one.values) for one in self.series]
        count = f"series ({len(self.series)}, by column {self.form.id!r}, id= names another)"
        return [
            describe_time(self.form, self.written, self.series[0].frequency, span),
            f"{count}: {shorten([one.name for one in self.series])}",
            f"rows: {sum(lengths):,}, {min(lengths):,} to {max(lengths):,} a series",
            f"channels ({len(self.names)}, columns= and ignore= choose): {shorten(self.names)}",
            *describe_left_out(self.left_out),
        ]


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels and times of all series, to be cut into single ones."""

    source: Source
    frame: pd.DataFrame
    times: Times | None

    def one_series(
        self,
        name: str,
        rows: np.ndarray,
        *,
        grid: bool,
        irregular: Irregular,
        frequency: str | None,
    ) -> Table:
        """The rows of one id as a table."""
        where = f"{self.source.where}, series {name!r}"
        frame = self.frame.iloc[rows].reset_index(drop=True)
        times = None if self.times is None else self.times.take(rows)
        line = timeline(
            times,
            len(frame),
            where=where,
            grid=grid,
            frequency=frequency,
            irregular=irregular,
        )
        form = Form(self.source.kind)
        if times is not None:
            form = Form(
                self.source.kind,
                time=times.name,
                zone=times.zone,
                local=times.local,
                style=times.style,
            )
        notes = (*line.notes, coarse_note(frame))
        return Table(
            name=name,
            where=where,
            values=reindex_rows(matrix(frame, where), line.rows),
            columns=tuple(str(column) for column in frame.columns),
            times=line.timestamps,
            frequency=line.frequency,
            order=line.rows,
            form=form,
            notes=tuple(note for note in notes if note),
        )


def find_time_in_one(frame: pd.DataFrame, key: str, channels: Sequence[str]) -> list[str]:
    """The time column of the first series: in all of them together, times repeat."""
    if time_index(frame) is not None:
        return []
    first = frame[frame[key] == frame[key].iloc[0]].reset_index(drop=True)
    return find_time(first.drop(columns=[key, *channels], errors="ignore"))


def id_note(key: str, count: int) -> tuple[str, ...]:
    """Say which column was taken to tell series apart."""
    return (
        f"Column {key!r} was taken to tell {count:,} series apart: id= names another, ignore= "
        "leaves it out.",
    )


def rows_of_series(ids: pd.Series) -> list[tuple[str, np.ndarray]]:
    """Names of the series in the order in which they occur, and the rows of each."""
    import pandas as pd

    codes, keys = pd.factorize(ids)
    borders = np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), borders)
    return [(str(key), own) for key, own in zip(keys, rows, strict=True)]


def panel_form(
    kind: Any,
    ids: pd.Series,
    times: Times | None,
    groups: list[tuple[str, np.ndarray]],
    channels: tuple[str, ...],
) -> Form:
    """The form of a table of several series."""
    import pandas as pd

    form = Form(
        kind,
        long=True,
        id=str(ids.name),
        channels=tuple(map(str, channels)),
        id_type=str(ids.dtype) if pd.api.types.is_numeric_dtype(ids) else None,
    )
    if times is None:
        return form
    from dataclasses import replace

    return replace(
        form,
        time=times.name,
        zone=times.zone,
        local=times.local,
        style=times.style,
        counters=counters_of({name: times.take(rows) for name, rows in groups}),
    )


def read_table_or_panel(source: Source, **options: Any) -> Table | Panel:
    """Read one series, or several if an id is named or found.

    Args:
        source: What was loaded.
        options: As for `Panel.read`.

    Returns:
        A table, or a panel.

    Raises:
        DataError: The source cannot be read, or an array is asked for its ids.
    """
    id = options.pop("id", None)
    if isinstance(source.content, np.ndarray):
        if id is not None:
            raise DataError(f"{source.where} is an array: it has no column {id!r}.")
        return Table.read(source, **options)
    found = id or find_ids(source, options.get("time"), options.get("ignore", ()))
    if not found:
        return Table.read(source, **options)
    return Panel.read(source, id=id, **options)
