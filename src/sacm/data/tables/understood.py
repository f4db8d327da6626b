"""Short lines that say how a table or a panel was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tables.date_text import TRIPLE

if TYPE_CHECKING:
    from sacm.data.tables.form import Form
    from sacm.data.tables.roles import LeftOut

OPTIONS = {"not wanted": "", "not asked for": ""}
MOST_NAMES = 12


def describe_time(form: Form, written: str, frequency: str | None, times: np.ndarray | None) -> str:
    """One line on the time: where it was found, how it was read, its step and its span.

    What was guessed names the argument that decides it, as `time=`.
    """
    if form.time is None and not form.indexed:
        return "time: none (time= names a column), rows are taken as evenly spaced"
    place = "the index" if form.indexed else f"column {form.time!r}"
    parts = [f"time: {place} (time=)", f"read as {written}{order_option(written)}"]
    if times is not None and len(times):
        ends = form.write_times(times[[0, -1]])
        step = "no regular step" if frequency is None else f"step {frequency}"
        parts += [f"{step} (frequency=)", f"{ends.iloc[0]} to {ends.iloc[1]}"]
        if form.style is not None and form.style.startswith("epoch"):
            dates = [str(one).replace("T", " ") for one in times[[0, -1]].astype("datetime64[s]")]
            parts.append(f"that is {dates[0]} to {dates[1]} in UTC")
    else:
        parts.append("used for the order of rows only")
    if form.zone is not None:
        clock = "by the local clock" if form.local else "kept in UTC"
        parts.append(f"zone {form.zone} (zone=), {clock}")
    elif times is not None and form.style is None:
        parts.append("no zone (zone=)")
    return ", ".join(parts)


def order_option(written: str) -> str:
    """The argument that decides how a date is read, if its day, month and year are numbers."""
    first = written.removeprefix("dates like ")
    return " (date_order=)" if first != written and TRIPLE.match(first) else ""


def shorten(names: Sequence[str]) -> str:
    """Names, only the first few if there are many."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def describe_left_out(columns: Iterable[LeftOut]) -> list[str]:
    """A line on each column that is no channel."""
    return [
        f"left out: column {one.name!r}, {one.reason}{OPTIONS.get(one.reason, ' (columns=)')}"
        for one in columns
    ]
