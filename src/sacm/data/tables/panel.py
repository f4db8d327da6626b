"""Several series in one long table, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sacm.data.tables.columns import coarse_note, numbers
from sacm.data.tables.date_text import DateOrder
from sacm.data.tables.dates import Times, read_times
from sacm.data.tables.form import ID_COLUMN, Form
from sacm.data.tables.roles import LeftOut
from sacm.data.tables.source import Source, load_source
from sacm.data.tables.table import Table, counters_of, reindex_rows
from sacm.data.tables.timeline import Irregular, timeline
from sacm.data.tables.understood import describe_left_out, describe_time, shorten
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

TIME_COLUMN, VALUE_COLUMN = "ds", "y"
LONG_COLUMNS = {ID_COLUMN, TIME_COLUMN, VALUE_COLUMN}


def is_long(source: Source) -> bool:
    """Whether a source is a long table of several series: `unique_id, ds, y`."""
    content = source.content
    return not isinstance(content, np.ndarray) and set(content.columns) >= LONG_COLUMNS


@dataclass(frozen=True, eq=False)
class Panel:
    """Several series, each a `Table` with one channel `y`.

    Attributes:
        name: A short name.
        where: What errors call the whole table.
        series: The tables, in the order in which their ids occur.
        form: How the data came in.
        notes: What was found or guessed for the table as a whole; each series has its own.
        left_out: Columns that are not used, and why.
        written: How the times were written, in words.
    """

    name: str
    where: str
    series: tuple[Table, ...]
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
        irregular: Irregular = "error",
        frequency: str | None = None,
        date_order: DateOrder | None = None,
    ) -> Self:
        """Read a long table `unique_id, ds, y`.

        Args:
            source: A file, a frame, or a `Source` that was loaded before.
            name: A short name. Default: that of the file, or "data".
            irregular: "error" refuses times on no grid, "keep" takes them as they are.
            frequency: The time step as a pandas alias. Default: found for each series.
            date_order: How to read dates such as 01/02/03. Default: as needs the least sorting.

        Returns:
            The series in order of time, each on its own grid.

        Raises:
            DataError: A row has no id, or one of the series cannot be read.
        """
        loaded = load_source(source, name)
        assert not isinstance(loaded.content, np.ndarray)
        frame, where = loaded.content.reset_index(drop=True), loaded.where
        ids = frame[ID_COLUMN]
        if ids.isna().any():
            row = int(np.flatnonzero(ids.isna())[0])
            raise DataError(f"{where}: row {row + 1} has no {ID_COLUMN}.")
        times = read_times(frame[TIME_COLUMN], where, ids, date_order)
        groups = rows_of_series(ids)
        series = tuple(
            one_series(
                loaded._replace(
                    content=frame.iloc[rows], name=key, where=f"{where}, series {key!r}"
                ),
                times.take(rows),
                irregular=irregular,
                frequency=frequency,
            )
            for key, rows in groups
        )
        ignored = [str(column) for column in frame.columns if column not in LONG_COLUMNS]
        unused = (f"Columns not used: {', '.join(ignored)}.",) if ignored else ()
        form = panel_form(loaded, ids, times, groups)
        left_out = tuple(LeftOut(column, "not id, time or value") for column in ignored)
        notes = (*unused, *times.notes)
        return cls(loaded.name, where, series, form, notes, left_out, times.written)

    def understood(self) -> list[str]:
        """Say in short lines how the table was read: time, series, columns left out."""
        stamps = [one.times for one in self.series if one.times is not None]
        ends = np.sort([place for own in stamps for place in (own.min(), own.max())])
        span = ends if len(stamps) == len(self.series) else None
        lengths = [len(one.values) for one in self.series]
        return [
            describe_time(self.form, self.written, self.series[0].frequency, span),
            f"series ({len(self.series)}): {shorten([one.name for one in self.series])}",
            f"rows: {sum(lengths):,}, {min(lengths):,} to {max(lengths):,} a series",
            *describe_left_out(self.left_out),
        ]


def rows_of_series(ids: pd.Series) -> list[tuple[str, np.ndarray]]:
    """Names of the series in the order in which they occur, and the rows of each."""
    import pandas as pd

    codes, keys = pd.factorize(ids)
    borders = np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), borders)
    return [(str(key), own) for key, own in zip(keys, rows, strict=True)]


def one_series(
    source: Source, times: Times, *, irregular: Irregular, frequency: str | None
) -> Table:
    """The rows of one id as a table."""
    frame, where = source.content, source.where
    assert not isinstance(frame, np.ndarray)
    frame = frame.reset_index(drop=True)
    line = timeline(times, len(frame), where=where, frequency=frequency, irregular=irregular)
    values = numbers(frame[VALUE_COLUMN], where).astype(np.float32)[:, None]
    notes = (*line.notes, coarse_note(frame[[VALUE_COLUMN]]))
    return Table(
        name=source.name,
        where=where,
        values=reindex_rows(values, line.rows),
        columns=(VALUE_COLUMN,),
        times=line.timestamps,
        frequency=line.frequency,
        order=line.rows,
        form=Form(
            source.kind, time=TIME_COLUMN, zone=times.zone, local=times.local, style=times.style
        ),
        notes=tuple(note for note in notes if note),
    )


def panel_form(
    source: Source, ids: pd.Series, times: Times, groups: list[tuple[str, np.ndarray]]
) -> Form:
    """The form of a long table."""
    import pandas as pd

    return Form(
        source.kind,
        long=True,
        time=TIME_COLUMN,
        zone=times.zone,
        local=times.local,
        style=times.style,
        counters=counters_of({name: times.take(rows) for name, rows in groups}),
        id_type=str(ids.dtype) if pd.api.types.is_numeric_dtype(ids) else None,
    )
