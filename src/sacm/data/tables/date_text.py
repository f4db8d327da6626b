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


class DateReading(NamedTuple):
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
    if best.dates.isna().any():
        return best.dates, ()
    notes = order_notes(column, best, [name for name in rivals if name != best.order])
    return best.dates, (*(notes if len(ways) > 1 else ()), *century_notes(column, best))


def order_notes(column: pd.Series, best: DateReading, rivals: list[str]) -> tuple[str, ...]:
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


def century_notes(column: pd.Series, best: DateReading) -> tuple[str, ...]:
    """What was guessed about the century of years of two digits."""
    first = str(column.iloc[0])
    triple = TRIPLE.match(first)
    if not (NAMED.match(first) or is_month_and_year(first) or (triple and len(triple[3]) == 2)):
        return ()
    years = best.dates.dt.year
    return (
        f"Years of two digits were taken as {years.min()} to {years.max()}: write them in four if "
        "that is wrong.",
    )


def cost_of(way: DateReading, groups: pd.Series | None) -> tuple[float, ...]:
    """What a way to read dates costs: cells that fail, then rows to sort and to fill in."""
    missing = int(way.dates.isna().sum())
    return (missing,) if missing else (0, *grid_cost(way.dates, groups))


def distinct(ways: list[DateReading]) -> list[DateReading]:
    """The ways that give different dates; of equal ones, the first."""
    found: list[DateReading] = []
    for way in ways:
        if not any(way.dates.equals(other.dates) for other in found):
            found.append(way)
    return found


def candidates(column: pd.Series) -> list[DateReading]:
    """Every way to read a column, the most usual one first; dates without a year are refused."""
    first = str(column.iloc[0])
    triple = TRIPLE.match(first)
    if triple is not None:
        return numeric_orders(column, first, two_digits=len(triple[3]) == 2)
    if NAMED.match(first):
        a, month, b, rest = split_by(NAMED, column)
        return [
            *in_each_century(b, month, a, rest, "day first"),
            *in_each_century(a, month, b, rest, "year first"),
        ]
    if is_month_and_year(first):
        month, year = split_by(MONTH_YEAR, column)
        day, rest = month.map(lambda text: "1"), month.map(lambda text: "")
        ways = in_each_century(year, month, day, rest, "")
        return [DateReading(months_only(way.dates)) for way in ways]
    dates = quiet_dates(column)
    if dates.isna().any():  # pandas keeps to the first cell, which may lack the time of day
        # May is a name in short and in full.
        months = (guess_format(first) or "").replace("%B", "%b")
        for style in ("ISO8601", *([months] if "%b" in months else [])):
            other = quiet_dates(column, style=style)
            dates = dates if other.isna().sum() >= dates.isna().sum() else other
    dated = column.astype(str).str.contains(YEAR)
    return [DateReading(dates.where(dated.to_numpy()))]


def numeric_orders(column: pd.Series, first: str, *, two_digits: bool) -> list[DateReading]:
    """Ways to read dates such as 01/02/2024 or 01/02/24."""
    if not two_digits and guess_format(first) is not None:
        ways = [
            DateReading(quiet_dates(column), "month first"),
            DateReading(quiet_dates(column, day_first=True), "day first"),
        ]
    else:
        a, b, c, rest = split_by(TRIPLE, column)
        ways = [
            *in_each_century(c, a, b, rest, "month first"),
            *in_each_century(c, b, a, rest, "day first"),
        ]
        if two_digits:
            ways += in_each_century(a, b, c, rest, "year first")
    if "." in first[:3]:  # nobody writes dots and the month first
        ways.sort(key=lambda way: ("day first", "month first", "year first").index(way.order))
    return ways


def split_by(pattern: re.Pattern[str], column: pd.Series) -> list[pd.Series]:
    """The groups of a pattern, a column each."""
    parts = column.astype(str).str.extract(pattern)
    return [parts[name].fillna("") for name in parts.columns]


def in_each_century(
    year: pd.Series, month: pd.Series, day: pd.Series, rest: pd.Series, order: str
) -> list[DateReading]:
    """Dates from their parts; years of two digits in each way to find their century."""
    import pandas as pd

    number = pd.to_numeric(year, errors="coerce").fillna(0).astype(int)
    if year.str.len().max() > 2:
        return [DateReading(assemble(number, month, day, rest), order)]
    posix = number + np.where(number < CENTURY, 2000, 1900)
    # Years that go on beyond 2068 or begin before 1969: cut the century where none of them is.
    used = np.unique(number)
    gaps = np.diff(np.append(used, used[0] + 100))
    cut = used[(int(gaps.argmax()) + 1) % len(used)]
    unbroken = number + np.where(number < cut, 100, 0)
    unbroken += int(posix.iloc[0]) - int(unbroken.iloc[0])
    ways = [posix] if posix.equals(unbroken) else [posix, unbroken]
    return [DateReading(assemble(years, month, day, rest), order) for years in ways]


def assemble(year: pd.Series, month: pd.Series, day: pd.Series, rest: pd.Series) -> pd.Series:
    """Dates from their parts; months may be names."""
    names = {name: str(place + 1) for place, name in enumerate(MONTHS)}
    months = month.where(~month.str.match("[A-Za-z]"), month.str[:3].str.lower().map(names))
    text = year.astype(str).str.zfill(4) + "-" + months.fillna("0").str.zfill(2)
    return quiet_dates((text + "-" + day.str.zfill(2) + " " + rest).str.strip())


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
