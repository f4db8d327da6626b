"""Put rows in order of time and on a regular grid."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from sacm.data.tables.dates import Times
from sacm.data.tables.time_grid import full_grid
from sacm.errors import ArgumentError, DataError

Irregular = Literal["error", "keep"]


class Timeline(NamedTuple):
    """Where each row of the table goes.

    `rows` are positions in the table, -1 for a row that was missing on the grid; `timestamps` is
    None for a table without dates.
    """

    rows: np.ndarray
    timestamps: np.ndarray | None
    frequency: str | None
    notes: tuple[str, ...]


def timeline(
    times: Times | None,
    rows: int,
    *,
    where: str,
    grid: bool = True,
    frequency: str | None = None,
    irregular: Irregular = "error",
) -> Timeline:
    """Order and check the times of a table, and insert the rows that its grid lacks.

    Args:
        times: The time column of the table, None if it has none.
        rows: Number of rows of the table.
        where: What errors call the table.
        grid: Whether to insert missing rows; False only sorts.
        frequency: The time step as a pandas alias. Default: found from the times.
        irregular: What to do with times on no grid: refuse them, or keep them as they are.

    Returns:
        The place of every row.

    Raises:
        DataError: Two rows have the same time, or the times lie on no grid.
        ArgumentError: `frequency` is unknown.
    """
    check_frequency(frequency)
    line = sort_rows(times, rows, where=where)
    if line.timestamps is None:
        return line._replace(frequency=frequency if times is None else None)
    if not grid:
        return line._replace(frequency=found_step(line.timestamps))
    return on_grid(line, where, frequency=frequency, irregular=irregular)


def found_step(stamps: np.ndarray) -> str | None:
    """The step of sorted timestamps as a pandas alias, if all of them are there."""
    import pandas as pd

    return None if len(stamps) < 3 else pd.infer_freq(pd.DatetimeIndex(stamps))


def sort_rows(times: Times | None, rows: int, *, where: str) -> Timeline:
    """Only order and check the times: no row is inserted."""
    if times is None:
        return Timeline(np.arange(rows), None, None, ())
    if times.stamps is None:
        check_increasing(times, where)
        return Timeline(np.arange(rows), None, None, times.notes)
    stamps, notes = times.stamps, times.notes
    order = np.argsort(stamps, kind="stable")
    if (np.diff(order) < 0).any():
        first = int(np.flatnonzero(np.diff(stamps) < np.timedelta64(0))[0]) + 2
        notes += (f"Rows were not in order of time (first at row {first}) and have been sorted.",)
    check_unique(stamps, order, where)
    return Timeline(order, stamps[order], None, notes)


def check_increasing(times: Times, where: str) -> None:
    """Refuse a counter that does not rise from row to row."""
    assert times.counter is not None
    wrong = np.flatnonzero(~(np.diff(times.counter) > 0))
    if len(wrong):
        raise DataError(
            f"{where}: the time column {times.name!r} does not increase at row {wrong[0] + 2}."
        )


def check_frequency(frequency: str | None) -> None:
    """Refuse what pandas does not know as a frequency."""
    from pandas.tseries.frequencies import to_offset

    try:
        to_offset(frequency)
    except ValueError as error:
        raise ArgumentError(
            f"{frequency!r} is not a frequency: use a pandas alias such as 'h', '15min' or 'MS'."
        ) from error


def check_unique(stamps: np.ndarray, order: np.ndarray, where: str) -> None:
    """Refuse a timestamp that occurs twice."""
    ordered = stamps[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        rows = sorted((int(order[twice[0]]) + 1, int(order[twice[0] + 1]) + 1))
        hint = ""
        if is_put_back(ordered, twice):
            hint = (
                " (if the clock was put back there, zone= names its time zone; or write times in "
                "UTC or with their offset)"
            )
        raise DataError(
            f"{where}: rows {rows[0]} and {rows[1]} have the same timestamp {ordered[twice[0]]}: "
            f"keep one of them, name the column that tells series apart with id=, or give each "
            f"series a unique_id{hint}."
        )


def is_put_back(stamps: np.ndarray, twice: np.ndarray) -> bool:
    """Whether timestamps that occur twice may be an hour when the clock was put back.

    `stamps` `[T]` are sorted, `twice` are positions of those equal to the next.
    """
    hours = stamps[twice].astype("datetime64[h]")
    nights = np.unique(hours)
    early = (nights - nights.astype("datetime64[D]")).astype(np.int64) <= 3
    weeks_apart = np.diff(nights.astype("datetime64[D]")).astype(np.int64) >= 28
    shorter_than_days = np.median(np.diff(stamps.astype("datetime64[s]")).astype(np.int64)) < 86_400
    rare = len(twice) <= len(stamps) / 10
    return bool(rare and early.all() and weeks_apart.all() and shorter_than_days)


def on_grid(line: Timeline, where: str, *, frequency: str | None, irregular: Irregular) -> Timeline:
    """Sorted timestamps on their regular grid; rows missing there become -1."""
    import pandas as pd
    from pandas.tseries.frequencies import to_offset

    order, stamps, _, notes = line
    assert stamps is not None
    if len(stamps) < 3:
        return Timeline(order, stamps, frequency, notes)
    index = pd.DatetimeIndex(stamps)
    regular = pd.infer_freq(index)
    if regular is not None and (frequency is None or to_offset(frequency) == to_offset(regular)):
        return Timeline(order, stamps, regular, notes)
    grid = full_grid(index, frequency)
    if grid is None:
        if irregular == "keep":
            note = "Timestamps are irregular; rows are taken as if they were evenly spaced."
            return Timeline(order, stamps, frequency, (*notes, note))
        raise irregular_error(stamps, order, where)
    rows = np.full(len(grid), -1)
    rows[grid.get_indexer(index)] = order
    missing = int((rows < 0).sum())
    first = grid[int(np.flatnonzero(rows < 0)[0])]
    note = f"{missing:,} rows were missing (first at {first}) and have been inserted."
    full = grid.to_numpy().astype(stamps.dtype)
    return Timeline(rows, full, frequency or grid.freqstr, (*notes, note))


def irregular_error(stamps: np.ndarray, order: np.ndarray, where: str) -> DataError:
    """The error for timestamps that lie on no grid."""
    steps = np.diff(stamps)
    usual = np.median(steps.astype(np.int64)).astype(np.int64).astype(steps.dtype)
    odd = int(np.flatnonzero(steps != usual)[0])
    return DataError(
        f"{where}: timestamps are irregular: {stamps[odd + 1]} (row {int(order[odd + 1]) + 1}) "
        f"comes {steps[odd]} after the one before, usual are {usual}: resample to a regular step "
        "(irregular='keep' takes rows as evenly spaced; if there are several series, id= names "
        "their column)."
    )
