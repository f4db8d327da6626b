"""Short lines that say how a table or a panel was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sacm.data.tables.form import Form
    from sacm.data.tables.roles import LeftOut

MOST_NAMES = 12


def describe_time(form: Form, written: str, frequency: str | None, times: np.ndarray | None) -> str:
    """One line on the time: where it was found, how it was read, its step and its span."""
    if form.time is None and not form.indexed:
        return "time: none, rows are taken as evenly spaced"
    place = "the index" if form.indexed else f"column {form.time!r}"
    parts = [f"time: {place}", f"read as {written}"]
    if times is not None and len(times):
        ends = form.write_times(times[[0, -1]])
        parts.append("no regular step" if frequency is None else f"step {frequency}")
        parts.append(f"{ends.iloc[0]} to {ends.iloc[1]}")
    else:
        parts.append("used for the order of rows only")
    if form.zone is not None:
        parts.append(f"zone {form.zone}, {'by the local clock' if form.local else 'kept in UTC'}")
    return ", ".join(parts)


def shorten(names: Sequence[str]) -> str:
    """Names, only the first few if there are many."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def describe_left_out(columns: Iterable[LeftOut]) -> list[str]:
    """A line on each column that is no channel."""
    return [f"left out: column {one.name!r}, {one.reason}" for one in columns]
