"""Dates written as text: every way to read a column is tried, and the best one is taken.

Pandas guesses a format from the first cell; where it finds none (two-digit years) it guesses anew
for each cell, so that one column is read in two ways. Here a column is read in one way. If several
ways read every cell, the one that needs the least sorting and filling is taken.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sacm.data.tables.time_grid import grid_cost

if TYPE_CHECKING:
    import pandas as pd

DateOrder = Literal["month first", "day first", "year first"]

REST = r"(?!\d)[T ,]*(.*?)\s*$"  # the time of day
TRIPLE = re.compile(r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})" + REST)  # 31/01/24
NAMED = re.compile(r"^\s*(\d{1,2})[-/. ]*([A-Za-z]{3,9})[-/., ']*(\d{2})" + REST)  # 31-Jan-24
MONTH_YEAR = re.compile(r"^\s*([A-Za-z]{3,9})[-/. ']*(\d{2})\s*$")  # Jan-24
YEAR = re.compile(r"(?<!\d)[12]\d{3}(?:\d{2}|\d{4}|\d{6}|\d{8}|\d{10})?(?!\d)")  # 2024, 20240131…
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
CENTURY = 69  # two-digit years from here on are of the 20th century, as in POSIX


class Reading(NamedTuple):
    """One way to read a column: dates, NaT where it fails, and what comes first in them."""

    dates: pd.Series
    order: str = ""


def looks_dated(text: str) -> bool:
    """Whether a text is a day, a month or a year, with the year written out or in two digits."""
    if TRIPLE.match(text) or NAMED.match(text) or is_month_and_year(text):
        return True
    import pandas as pd

    return bool(YEAR.search(text)) and bool(quiet_dates(pd.Series([text])).notna().all())


def is_month_and_year(text: str) -> bool:
    """Whether a text is like Jan-24."""
    found = MONTH_YEAR.match(text)
    return found is not None and found[1][:3].lower() in MONTHS


def read_text(
    column: pd.Series, groups: pd.Series | None, order: DateOrder | None = None
) -> tuple[pd.Series, tuple[str, ...]]:
    """Read a column of dates written as text.

    Args:
        column: Texts `[T]`.
        groups: Which series each row belongs to, where there are several.
        order: How to read dates such as 01/02/03. Default: as needs the least sorting and filling.

    Returns:
        Dates `[T]`, NaT where a text is none, and notes on what was guessed.
    """
    ways = distinct(candidates(column))
    chosen = [way for way in ways if order is None or way.order in ("", order)] or ways
    costs = [cost_of(way, groups) if len(chosen) > 1 else () for way in chosen]
    place = costs.index(min(costs))
    best = chosen[place]
    rivals = [way.order for way, cost in zip(chosen, costs, strict=True) if cost == costs[place]]
    if best.dates.isna().any() or len(ways) == 1:
        return best.dates, ()
    return best.dates, order_notes(column, best, [name for name in rivals if name != best.order])


def order_notes(column: pd.Series, best: Reading, rivals: list[str]) -> tuple[str, ...]:
    """What was guessed about the order of day, month and year."""
    first = f"({column.iloc[0]} as {best.dates.iloc[0]})"
    if rivals:
        return (
            f"Dates were read with the {best.order} {first}; with the {' or the '.join(rivals)} "
            f"they would make sense as well: date_order='{rivals[0]}' reads them so.",
        )
    if best.order in ("", "month first"):
        return ()
    return (f"Dates were read with the {best.order} {first}.",)


def cost_of(way: Reading, groups: pd.Series | None) -> tuple[float, ...]:
    """What a way to read dates costs: cells that fail, then rows to sort and to fill in."""
    missing = int(way.dates.isna().sum())
    return (missing,) if missing else (0, *grid_cost(way.dates, groups))


def distinct(ways: list[Reading]) -> list[Reading]:
    """The ways that give different dates; of equal ones, the first."""
    found: list[Reading] = []
    for way in ways:
        if not any(way.dates.equals(other.dates) for other in found):
            found.append(way)
    return found


def candidates(column: pd.Series) -> list[Reading]:
    """Every way to read a column, the most usual one first; dates without a year are refused."""
    first = str(column.iloc[0])
    triple = TRIPLE.match(first)
    if triple is not None:
        return numeric_orders(column, first, two_digits=len(triple[3]) == 2)
    if NAMED.match(first):
        a, month, b, rest = split_by(NAMED, column)
        return [
            Reading(assemble(b, month, a, rest), "day first"),
            Reading(assemble(a, month, b, rest), "year first"),
        ]
    if is_month_and_year(first):
        month, year = split_by(MONTH_YEAR, column)
        return [Reading(months_only(assemble(year, month)))]
    dates = quiet_dates(column)
    if dates.isna().any():  # pandas keeps to the first cell, which may lack the time of day
        wider = quiet_dates(column, style="ISO8601")
        dates = dates if wider.isna().sum() >= dates.isna().sum() else wider
    dated = column.astype(str).str.contains(YEAR)
    return [Reading(dates.where(dated.to_numpy()))]


def numeric_orders(column: pd.Series, first: str, *, two_digits: bool) -> list[Reading]:
    """Ways to read dates such as 01/02/2024 or 01/02/24."""
    if not two_digits and guess_format(first) is not None:
        ways = [
            Reading(quiet_dates(column), "month first"),
            Reading(quiet_dates(column, day_first=True), "day first"),
        ]
    else:
        a, b, c, rest = split_by(TRIPLE, column)
        ways = [
            Reading(assemble(c, a, b, rest), "month first"),
            Reading(assemble(c, b, a, rest), "day first"),
        ]
        if two_digits:
            ways.append(Reading(assemble(a, b, c, rest), "year first"))
    if "." in first[:3]:  # nobody writes dots and the month first
        ways[:2] = ways[1::-1]
    return ways


def split_by(pattern: re.Pattern[str], column: pd.Series) -> list[pd.Series]:
    """The groups of a pattern, a column each."""
    parts = column.astype(str).str.extract(pattern)
    return [parts[name].fillna("") for name in parts.columns]


def assemble(
    year: pd.Series, month: pd.Series, day: pd.Series | None = None, rest: pd.Series | None = None
) -> pd.Series:
    """Dates from their parts; years of two digits get a century, months may be names."""
    import pandas as pd

    number = pd.to_numeric(year, errors="coerce").fillna(0).astype(int)
    century = (number < CENTURY).map({True: 2000, False: 1900}).where(year.str.len() <= 2, 0)
    names = {name: str(place + 1) for place, name in enumerate(MONTHS)}
    months = month.where(~month.str.match("[A-Za-z]"), month.str[:3].str.lower().map(names))
    text = (number + century).astype(str).str.zfill(4) + "-" + months.fillna("0").str.zfill(2)
    if day is not None:
        text = text + "-" + day.str.zfill(2)
    if rest is not None:
        text = (text + " " + rest).str.strip()
    return quiet_dates(text)


def months_only(dates: pd.Series) -> pd.Series:
    """Dates of months; all NaT if a step is about a year: Jan-01, Jan-02 are days of no year."""
    import pandas as pd

    yearly = (dates.diff().abs() > pd.Timedelta(days=200)).mean() > 0.5
    return dates.where(np.full(len(dates), not yearly))


def guess_format(text: str) -> str | None:
    """The format that pandas would read a column by, whose first cell is `text`."""
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return guess_datetime_format(text)


def quiet_dates(
    column: pd.Series, *, day_first: bool = False, style: str | None = None
) -> pd.Series:
    """Dates, NaT where a value is none; pandas' advice on formats is for others."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pd.to_datetime(column, errors="coerce", dayfirst=day_first, format=style)
        except ValueError:  # mixed time zones
            return pd.to_datetime(
                column, errors="coerce", dayfirst=day_first, format=style, utc=True
            )
