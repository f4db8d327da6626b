"""Tables as users bring them, drawn at random, each with what is really in it."""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y"),
    *("%m/%d/%Y", "%m-%d-%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y", "%m/%d/%y", "%y-%m-%d"),
    *("%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%y", "%A, %d %B %Y"),
)
CLOCKS = (" %H:%M:%S", "T%H:%M:%S", " %H:%M", " %I:%M:%S %p", " %H:%M:%S.%f")
MONTHS = ("%Y-%m", "%b %Y", "%b-%y", "%Y%m", "%m/%Y")
EPOCHS = {"epoch s": 1, "epoch ms": 10**3, "epoch ns": 10**9}
DAY_STEPS = ("D", "B", "W-MON", "MS", "ME", "2D")
HOUR_STEPS = ("h", "6h", "15min", "30min")
ZONES = (None, None, "UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York")
DELIMITERS = (",", ",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1")
NAMES = ("load", "Wärme", "price $", "Power [kW]", "a b", "=cmd", "100", "x,y", "ds", "value")
EXTRAS = ("none", "none", "counter", "label", "calendar", "text", "unnamed", "empty", "constant")
ORDERS = ("straight", "straight", "backwards", "shuffled")
PACKINGS = ("plain", "plain", "plain", "gzip", "zip")
ROWS = (60, 150)


@dataclass
class OddTable:
    """A table in a file and what a reader should find in it.

    Attributes:
        path: The file, or a folder of files.
        facts: What is odd about it, by kind.
        options: Options of the command line that it needs.
        series: For each series its complete grid of times and the values on it `[T, C]`, NaN where
            nothing was written.
        channels: Names of the C channels.
        written: For each series the number of rows in the file.
    """

    path: Path
    facts: dict[str, Any]
    options: list[str] = field(default_factory=list)
    series: dict[str, tuple[pd.DatetimeIndex, np.ndarray]] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    written: dict[str, int] = field(default_factory=dict)


def draw_table(folder: Path, number: int) -> OddTable:
    """Draw table `number` and write it into a folder."""
    chance = np.random.default_rng(number)
    facts = draw_facts(chance)
    table = OddTable(folder / f"odd_{number}.csv", facts)
    names = ["a"] if not facts["several"] else ["north", "south [2]", "7"]
    channels = list(dict.fromkeys(chance.choice(NAMES, size=facts["channels"])))
    # A name that is itself one of a time would be two times in one table.
    table.channels = tuple("load2" if name == "ds" else str(name) for name in channels)
    frames = [one_frame(chance, table, name) for name in names]
    frame = pd.concat(frames, ignore_index=True)
    if facts["several"]:
        table.options += ["--id", "plant"] if facts["named"] else []
    else:
        frame = frame.drop(columns="plant")
    frame = add_extra(chance, frame, table)
    write_file(frame, table)
    return table


def draw_facts(chance: np.random.Generator) -> dict[str, Any]:
    """Everything that varies, drawn independently."""

    def pick(values: Any) -> Any:
        return values[int(chance.integers(len(values)))]

    kind = pick(("day", "day", "clock", "clock", "clock", "month", "epoch"))
    style = {"day": pick(DAYS), "clock": pick(DAYS) + pick(CLOCKS)}.get(kind)
    style = style or (pick(MONTHS) if kind == "month" else pick(tuple(EPOCHS)))
    steps = {"day": DAY_STEPS, "month": ("MS",), "clock": DAY_STEPS + HOUR_STEPS}
    return {
        "style": style,
        "step": pick(steps.get(kind, DAY_STEPS + HOUR_STEPS)),
        "zone": pick(ZONES) if kind == "clock" else None,
        "order": pick(ORDERS),
        "gaps": pick((0.0, 0.0, 0.1)),  # share of rows that are not there
        "missing": pick((0.0, 0.0, 0.05)),  # share of values that are not there
        "delimiter": pick(DELIMITERS),
        "encoding": pick(ENCODINGS),
        "decimal": pick((".", ".", ".", ",")),
        "channels": int(chance.integers(1, 4)),
        "extra": pick(EXTRAS),
        "start": int(chance.integers(0, 12_000)),  # in days; series of one table begin together
        "several": bool(chance.random() < 0.2),
        "named": bool(chance.random() < 0.5),  # whether the id is named on the command line
        "packing": pick(PACKINGS),
        "line_end": pick(("\n", "\n", "\r\n")),
        "comment": bool(chance.random() < 0.1),
        "place": pick(("first", "first", "last")),  # of the time column
        "time": pick(("date", "date", "Timestamp", "zeit", "when")),
    }


def one_frame(chance: np.random.Generator, table: OddTable, name: str) -> pd.DataFrame:
    """The rows of one series as they are written."""
    facts = table.facts
    count = int(chance.integers(*ROWS))
    start = pd.Timestamp("1995-01-01") + pd.Timedelta(days=facts["start"])
    grid = pd.date_range(start, periods=count, freq=facts["step"])
    if facts["zone"] is not None:
        grid = grid.tz_localize(facts["zone"], ambiguous="NaT", nonexistent="NaT")
        grid = grid[grid.notna()]
    values = np.cumsum(chance.normal(size=(len(grid), len(table.channels))), axis=0) + 5
    values = values.astype(np.float32)
    values[chance.random(values.shape) < facts["missing"]] = np.nan
    values[[0, 1, -1]] = np.round(chance.normal(size=(3, values.shape[1])), 3)
    kept = chance.random(len(grid)) >= facts["gaps"]
    kept[[0, 1, 2, -1]] = True  # the span and the step of the grid are there
    truth = np.where(kept[:, None], values, np.float32(np.nan))
    table.series[name] = (grid, truth)
    rows = np.flatnonzero(kept)
    table.written[name] = len(rows)
    rows = rows[::-1] if facts["order"] == "backwards" else rows
    rows = chance.permutation(rows) if facts["order"] == "shuffled" else rows
    frame = pd.DataFrame({facts["time"]: write_times(grid[rows], facts["style"]), "plant": name})
    for place, channel in enumerate(table.channels):
        frame[channel] = write_numbers(truth[rows, place], facts["decimal"])
    return frame


def date_order(style: str) -> str | None:
    """What comes first in dates of a style that begins with a number."""
    return {"%d": "day", "%m": "month", "%y": "year"}.get(style[:2])


def write_times(times: pd.DatetimeIndex, style: str) -> list[Any]:
    """Times as text or numbers."""
    if style in EPOCHS:
        return [int(when.timestamp()) * EPOCHS[style] for when in times]
    offset = "" if times.tz is None else "%z"
    return [when.strftime(style + offset) for when in times]


def write_numbers(values: np.ndarray, decimal: str) -> list[str]:
    """Numbers in full, empty where one is missing."""
    texts = ["" if np.isnan(value) else repr(float(value)) for value in values]
    return [text.replace(".", decimal) for text in texts]


def add_extra(chance: np.random.Generator, frame: pd.DataFrame, table: OddTable) -> pd.DataFrame:
    """A column that is no channel, or a channel that never changes; options where it needs some."""
    kind = table.facts["extra"]
    if table.facts["decimal"] == ",":
        table.options += ["--decimal", ","]
    if table.facts["time"] == "when":
        table.options += ["--time", "when"]
    if kind == "counter":
        frame["No"] = range(1, len(frame) + 1)
    elif kind == "label":
        frame["anomaly"] = (chance.random(len(frame)) < 0.1).astype(int)
    elif kind == "text":
        frame["remark [x]"] = chance.choice(["ok", "ok", "odd"], size=len(frame))
        table.options += ["--ignore", "remark [x]"]
    elif kind == "unnamed":
        frame.insert(0, "", range(len(frame)))
    elif kind == "empty":
        frame["hollow"] = ""
    elif kind == "calendar" and table.facts["style"] not in EPOCHS and len(table.series) == 1:
        grid = next(iter(table.series.values()))[0]
        by_text = dict(zip(write_times(grid, table.facts["style"]), grid.month, strict=True))
        frame["month"] = frame[table.facts["time"]].map(by_text)
    elif kind == "constant":
        frame["flat"] = "1.5".replace(".", table.facts["decimal"])
        table.channels = (*table.channels, "flat")
        for name, (grid, values) in table.series.items():
            there = ~np.isnan(values).all(axis=1)
            flat = np.where(there, np.float32(1.5), np.float32(np.nan))[:, None]
            table.series[name] = (grid, np.concatenate([values, flat], axis=1))
    if table.facts["place"] == "last":
        time = frame.pop(table.facts["time"])
        frame[table.facts["time"]] = time
    return frame


def write_file(frame: pd.DataFrame, table: OddTable) -> None:
    """Write the table with its delimiter, encoding, line ends and packing."""
    facts = table.facts
    text = io.StringIO()
    if facts["comment"]:
        text.write("# written by a plant" + facts["line_end"])
    frame.to_csv(text, index=False, sep=facts["delimiter"], lineterminator=facts["line_end"])
    content = text.getvalue().encode(facts["encoding"])
    if facts["packing"] == "gzip":
        table.path = table.path.with_suffix(".csv.gz")
        content = gzip.compress(content)
    if facts["packing"] == "zip":
        table.path = table.path.with_suffix(".zip")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("table.csv", content)
        content = packed.getvalue()
    table.path.write_bytes(content)
