"""Dates in many formats, steps, orders and zones: what is read is what was written, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from sacm.data.tables.table import Table
from sacm.errors import DataError

DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y %m %d", "%d/%m/%Y", "%d-%m-%Y"),
    *("%d.%m.%Y", "%m/%d/%Y", "%m-%d-%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y", "%m/%d/%y"),
    *("%y-%m-%d", "%y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%d %B %Y"),
    *("%d-%b-%y", "%d %b %y", "%a %d %b %Y", "%A, %d %B %Y"),
)
CLOCKS = (" %H:%M:%S", "T%H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p", " %H:%M:%S.%f")
MONTHS = ("%Y-%m", "%b %Y", "%B %Y", "%b-%y", "%Y%m", "%m/%Y", "%b-%Y")
# What each style can tell apart.
BY_DAY = ("D", "B", "W-MON", "MS", "ME", "YS", "2D")
BY_HOUR = ("h", "6h", "15min", "2h", "30min")
NUMBERS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York")

FORMATS = [
    *(("day", style) for style in DAYS),
    *(("clock", day + clock) for day in DAYS for clock in CLOCKS),
    *(("month", style) for style in MONTHS),
    *(("epoch", unit) for unit in NUMBERS),
]


def write(times: pd.DatetimeIndex, kind: str, style: str) -> list[Any]:
    if kind == "epoch":
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[style]
        return [int(when.timestamp()) * scale for when in times]
    texts = [when.strftime(style) for when in times]
    if times.tz is not None:
        texts = [text + when.strftime("%z") for text, when in zip(texts, times, strict=True)]
    return texts


def expected(times: pd.DatetimeIndex, table: Table) -> np.ndarray:
    """The times as a table should hold them: in UTC, or by the local clock."""
    if times.tz is not None:
        local = table.form.local
        times = times.tz_localize(None) if local else times.tz_convert("UTC").tz_localize(None)
    found: np.ndarray = times.to_numpy().astype("datetime64[s]")
    return found


def check_round_trip(data: st.DataObject, folder: Path) -> None:
    """Draw a table, write it, read it, and compare."""
    kind, style = data.draw(st.sampled_from(FORMATS))
    steps = {"day": BY_DAY, "month": ("MS", "QS", "YS"), "clock": BY_DAY + BY_HOUR}
    step = data.draw(st.sampled_from(steps.get(kind, BY_DAY + BY_HOUR)))
    zone = data.draw(st.sampled_from(ZONES)) if kind == "clock" else None
    rows = data.draw(st.integers(20, 90))
    start = data.draw(st.datetimes(pd.Timestamp("1975-01-01"), pd.Timestamp("2060-01-01")))
    whole = pd.Timestamp(start).floor("h" if kind == "clock" and step in BY_HOUR else "D")
    times = pd.date_range(whole, periods=rows, freq=step)
    if zone is not None:
        times = times.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
        times = times[times.notna()]
    kept = np.ones(len(times), dtype=bool)
    kept[1:-1] = data.draw(
        st.lists(
            st.sampled_from((True,) * 5 + (False,)) if data.draw(st.booleans()) else st.just(True),
            min_size=len(times) - 2,
            max_size=len(times) - 2,
        )
    )
    order = np.flatnonzero(kept)
    turn = data.draw(st.sampled_from(["straight", "backwards", "shuffled"]))
    if turn == "backwards":
        order = order[::-1]
    elif turn == "shuffled":
        order = data.draw(st.permutations(order.tolist()))
    picked = times[order]
    values = np.asarray(order, dtype=np.float64) * 3 + 0.5
    frame = pd.DataFrame({"date": write(picked, kind, style), "v": values})
    source: Any = frame
    if data.draw(st.booleans()):
        source = folder / "x.csv"
        frame.to_csv(source, index=False)
    try:
        table = Table.read(source)
    except DataError:
        event("refused")
        return
    event("read")
    if any("would make sense as well" in note for note in table.notes):
        event("said to be in doubt")
        return
    there = table.order >= 0
    assert table.times is not None
    found = table.times[there]
    wanted = expected(times[np.sort(np.asarray(order))], table)
    if any("Years of two digits were taken as" in note for note in table.notes):
        found, wanted = modulo_centuries(found), modulo_centuries(wanted)
    np.testing.assert_array_equal(found, wanted)
    assert table.values[there, 0].tolist() == sorted(values)


def modulo_centuries(times: np.ndarray) -> np.ndarray:
    """Times without their century, which two digits of a year do not tell."""
    index = pd.DatetimeIndex(times)
    return np.stack([index.year % 100, index.month, index.day, index.hour, index.minute])


OPTIONS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    "derandomize": True,
    "phases": [Phase.generate, Phase.shrink],
}


@settings(max_examples=25, **OPTIONS)
@given(data=st.data())
def test_what_is_read_is_what_was_written_or_a_sentence(
    data: st.DataObject, tmp_path: Path
) -> None:
    check_round_trip(data, tmp_path)


@pytest.mark.slow
@settings(max_examples=60, **OPTIONS)
@given(data=st.data())
def test_the_same_with_many_more_tables(data: st.DataObject, tmp_path: Path) -> None:
    check_round_trip(data, tmp_path)


@pytest.mark.parametrize(("kind", "style"), FORMATS)
def test_a_plain_table_is_read_in_every_format(kind: str, style: str) -> None:
    """Nothing is refused that is complete, in order and beyond doubt."""
    step = {"day": "D", "month": "MS", "clock": "h", "epoch": "h"}[kind]
    times = pd.date_range("2023-03-25", periods=100, freq=step)
    table = Table.read(pd.DataFrame({"date": write(times, kind, style), "v": np.arange(100.0)}))
    np.testing.assert_array_equal(table.times, times.to_numpy().astype("datetime64[s]"))
    assert (np.diff(table.values[:, 0]) == 1).all()


def test_there_are_enough_formats() -> None:
    assert len(FORMATS) >= 40
