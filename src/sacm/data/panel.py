"""Several series in one table: the column that tells them apart, and tables on their side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from sacm.data.csv import dated_cells, is_value
from sacm.data.dates import MONTHS, Times
from sacm.data.numbers import Reading, flag, holds_numbers, is_text, plain_name, some, words_of
from sacm.data.times import is_calendar, part_of

USUAL_ID, USUAL_TIME, USUAL_CHANNEL = "unique_id", "ds", "y"
REPEATED = 0.75  # share of different times below which several series are looked for
FEWEST_NUMBERED = 9  # numbered columns that make a row a series
ID_NAMES = frozenset(
    words_of(
        "uniqueid id seriesid series tsid itemid item sku product store storeid shop dept "
        "sensor sensorid station stationid device deviceid machine machineid unit unitid asset "
        "meter meterid site siteid plant location locationid customer customerid entity group"
    )
)
TURNED_TIME, TURNED_VALUE = "time", "value"


def is_usual(frame: pd.DataFrame) -> bool:
    """Whether a table has the columns `unique_id, ds, y`."""
    return {USUAL_ID, USUAL_TIME, USUAL_CHANNEL} <= set(frame.columns)


def turn_wide(
    frame: pd.DataFrame, ids: Sequence[str], time: Sequence[str], reading: Reading
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Make a table with times or months in its header, or a series a row, one series a column.

    Returns:
        The table, the columns that tell series apart, and the time column; as given if it is no
        such table.
    """
    names = [str(name) for name in frame.columns]
    months = [name for name in names if name.lower() in MONTHS]
    if len(months) == 12 and not time and any(part_of(name) == "year" for name in names):
        rest = [name for name in names if name not in months]
        long = frame.melt(rest, months, "month", TURNED_VALUE, ignore_index=False)
        reading.note("A calendar (a row a year, a column a month) was read as one series.")
        return long.sort_index(kind="stable").reset_index(drop=True), list(ids), []
    dated = dated_cells(names)
    numbered = not dated and _is_numbered(frame, names)
    if time or not (dated or numbered):
        return frame, list(ids), list(time)
    if numbered and not ids and frame[names[-1]].notna().mean() > 0.5:
        raise reading.error(
            f"column {names[0]!r} names every row and the others are numbered: "
            f"{flag('id', names[0])} if a row is a series, {flag('ignore', names[0])} if a column "
            "is one."
        )
    labels = [name for name in names if not is_value(name)] if dated else names[:1]
    odd = [name for name in names if name not in (*labels, *dated)] if dated else []
    several = [name for name in labels if frame[name].nunique() > 1] or labels
    labels = [name for name in several if frame[name].dtype.kind != "f"] or several
    frame = frame.fillna(dict.fromkeys(labels, ""))
    long = frame.melt(labels, dated or names[1:], TURNED_TIME, TURNED_VALUE, ignore_index=False)
    long = long.sort_index(kind="stable").reset_index(drop=True)
    how = ", with its times in the header" if dated else ""
    reading.note(f"Every row was read as a series, named by {some(labels)}{how}.")
    if odd:
        reading.note(f"Columns whose header is no time like the others were left out: {some(odd)}.")
    if dated:
        return long, list(ids) or labels, [TURNED_TIME]
    given = long[TURNED_VALUE].notna()
    kept = given[::-1].groupby(long[labels[0]]).cummax()[::-1]  # up to the last value
    return long[kept].drop(columns=TURNED_TIME).reset_index(drop=True), list(ids) or labels, []


def _is_numbered(frame: pd.DataFrame, names: list[str]) -> bool:
    """Whether the first column names every row and the others are numbered: V2, V3."""
    parts = [re.fullmatch(r"(\D*)(\d+)", name) for name in names[1:]]
    if len(parts) < FEWEST_NUMBERED or not all(parts):
        return False
    first = frame[names[0]]
    return (
        len({part[1] for part in parts if part}) == 1
        and first.is_unique
        and is_text(first)
        and not any(is_value(str(cell)) for cell in first.iloc[:50])
    )


def find_ids(
    frame: pd.DataFrame, times: Times | None, skip: Sequence[str], reading: Reading
) -> list[str]:
    """Find the column that tells several series apart, where times repeat.

    Args:
        frame: The table.
        times: Its times, None if it has none.
        skip: Columns that are something else.
        reading: Takes a note.

    Returns:
        The column, none if there is one series.

    Raises:
        DataError: Several columns could be it.
    """
    if times is None or times.stamps is None or times.distinct == len(frame):
        return []
    stamps = pd.Series(times.stamps)
    names = [name for name in frame.columns if name not in (*skip, *times.columns)]
    words = [name for name in names if is_text(frame[name]) and not holds_numbers(frame[name])]
    numbers = [
        name
        for name in names
        if frame[name].dtype.kind in "iu" or (name not in words and is_text(frame[name]))
    ]
    usual = [name for name in numbers if plain_name(name) in ID_NAMES]
    few = times.distinct < REPEATED * len(stamps)
    able: list[tuple[str, ...]] = []
    for pool in (words, usual, numbers if few else []):
        able = [(name,) for name in pool if _tells_apart(frame[[name]], stamps)]
        able = [
            (name,)
            for place, (name, *_) in enumerate(able)
            if not any(frame.groupby(o)[name].nunique().max() == 1 for o, *_ in able[:place])
        ]
        if able:
            break
    else:
        pairs = combinations([*words, *usual], 2)
        able = [pair for pair in pairs if few and _tells_apart(frame[list(pair)], stamps)]
    if len(able) > 1:
        listed = some(map(" + ".join, able))
        raise reading.error(
            f"times repeat and several columns can tell series apart ({listed}): "
            f"{flag('id', ','.join(able[0]))} names one of them."
        )
    if able:
        reading.note(
            f"Column {' + '.join(able[0])!r} was taken to tell series apart: {flag('id')} names "
            f"another, {flag('ignore')} leaves it out."
        )
        return list(able[0])
    return []


def _tells_apart(columns: pd.DataFrame, stamps: pd.Series) -> bool:
    """Whether no values of some columns have a time twice, and each column has few values."""
    text = columns.reset_index(drop=True).astype(str)
    for name in columns.columns:
        if columns[name].isna().any() or not 1 < text[name].nunique() <= len(text) / 2:
            return False
        if part_of(name) is not None or is_calendar(text[name]):
            return False
    return not bool(text.assign(**{"the time": stamps}).duplicated().any())


def series_rows(
    frame: pd.DataFrame, ids: Sequence[str], reading: Reading
) -> tuple[pd.Series | None, list[tuple[str, np.ndarray]]]:
    """The column of names, and name and rows of every series in the order in which they occur."""
    if not ids:
        return None, [("", np.arange(len(frame)))]
    for name in ids:
        if frame[name].isna().any():
            row = int(np.flatnonzero(frame[name].isna())[0])
            raise reading.error(f"row {row + 1} has no {name}.")
    joined = frame[ids[0]]
    for name in ids[1:]:
        joined = joined.astype(str) + "/" + frame[name].astype(str)
    codes, keys = pd.factorize(joined)
    borders = np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), borders)
    column = joined.rename("/".join(ids))
    return column, [(str(key), own) for key, own in zip(keys, rows, strict=True)]
