"""Odd tables through the commands: is what was read what was written?

python -m benchmarks.odd_inputs --tables 500 --out results/users/odd_inputs.json

Every table goes through `sacm score`, in this process. Its windows (series, rows, times, scores)
are compared with those of the table as it was drawn, before it became text. A table whose dates are
said to be in doubt is read again with `--date-order`. Some tables also go through `sacm quality`,
fewer through `sacm train` and `sacm predict`, whose forecasts must begin one step after the end of
every series. An answer that differs is a silent mistake; a refusal that is no sentence is a
traceback.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.odd_tables import OddTable, date_order, draw_table, write_times
from sacm import score_windows
from sacm.cli.main import main as run_sacm
from sacm.data import ChannelScaler
from sacm.data.scaling import fill_gaps

WINDOW = 16
IN_DOUBT = "can be read in two ways"  # the command refuses, and names the option


VERDICTS = ("read right", "refused", "traceback", "silent mistake")
QUALITY_EVERY, TRAIN_EVERY = 5, 20


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str
    crashed: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = try_tables(range(options.first, options.first + options.tables), report=print)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def try_tables(
    numbers: range, report: Callable[[str], object], *, deep: bool = True
) -> dict[str, Any]:
    """Try every table and count what came of it; `report` hears of each mistake.

    `deep` also trains, and inspects the quality, of some.
    """
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            table = draw_table(Path(folder), number)
            verdict, detail = try_score(table, counts)
            if deep and verdict != "refused" and number % QUALITY_EVERY == 0:
                verdict, detail = max((verdict, detail), try_quality(table, counts), key=badness)
            if deep and verdict == "read right" and number % TRAIN_EVERY == 0:
                verdict, detail = try_training(table, Path(folder), counts)
            counts[verdict] += 1
            if verdict in ("traceback", "silent mistake"):
                report(f"{number}: {verdict}: {detail}\n  {table.facts} {table.options}")
            if verdict == "refused":
                reasons[shape_of(detail)] += 1
            table.path.unlink()
    return {
        "tables": len(numbers),
        "commands": counts["commands"],
        **{name: counts[name] for name in VERDICTS},
        "first said to be in doubt": counts["in doubt"],
        "reasons to refuse": dict(reasons.most_common()),
    }


def try_score(table: OddTable, counts: Counter[str]) -> tuple[str, str]:
    """Score a table; one whose dates are in doubt again, with their order."""
    command = ("score", table.path, "--window", WINDOW, "--json", *table.options)
    outcome = run_command(*command)
    counts["commands"] += 1
    if outcome.code and IN_DOUBT in outcome.err:
        order = date_order(table.facts["style"])
        outcome = run_command(*command, "--date-order", order)
        counts["commands"] += 1
        counts["in doubt"] += 1
    return judge(table, outcome)


def try_quality(table: OddTable, counts: Counter[str]) -> tuple[str, str]:
    """Inspect a table: the number of rows must be that of the file."""
    lacks = ("--frequency",)
    options = [text for text in table.options if text not in lacks]
    outcome = run_command("quality", table.path, "--json", *options)
    counts["commands"] += 1
    if outcome.code or outcome.crashed:
        verdict, detail = judge(table, outcome)
        return ("traceback", f"quality: {detail}") if verdict == "traceback" else ("read right", "")
    rows = sum(table.written.values())
    found = json.loads(outcome.out)["rows"]
    return (
        ("read right", "") if found == rows else ("silent mistake", f"quality: {found} for {rows}")
    )


def try_training(table: OddTable, folder: Path, counts: Counter[str]) -> tuple[str, str]:
    """Train on a table and forecast: every series goes on where it ended."""
    runs = folder / f"runs_{table.path.name}"
    network = ("--backbone", "iTransformer", "--size", "small", "--epochs", 1)
    sizes = ("--input-len", 2, "--horizon", 1, "--batch-size", 256)
    trained = run_command(
        *("train", "forecasting", "--data", table.path, *table.options),
        *(*network, *sizes, "--runs", runs, "--json"),
    )
    counts["commands"] += 1
    if trained.code or trained.crashed:
        verdict, detail = judge(table, trained)
        return verdict, f"train: {detail}"
    ahead = run_command("predict", json.loads(trained.out)["run"], "--json")
    counts["commands"] += 1
    if ahead.code or ahead.crashed:
        return "traceback", f"predict: {ahead.err[-500:]}"
    rows = json.loads(ahead.out)
    for (name, (grid, _)), row in zip(table.series.items(), rows, strict=True):
        following = pd.date_range(grid[-1], periods=2, freq=table.facts["step"])[-1]
        time = row[table.facts["time"]]
        if len(table.series) > 1 and str(row["plant"]) != name:
            return "silent mistake", f"predict: series {row['plant']} for {name}"
        if not same_time(time, following, table):
            return "silent mistake", f"predict: {time} for {following}"
    return "read right", ""


def badness(found: tuple[str, str]) -> int:
    """Place of a verdict among all, the worst last."""
    return VERDICTS.index(found[0])


def run_command(*arguments: object) -> Outcome:
    """`sacm` with these arguments, in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["sacm", *map(str, arguments)]
    code, crashed = 0, False
    try:
        with redirect_stdout(out), redirect_stderr(err):
            run_sacm()
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:
        crashed = True
        err.write(traceback.format_exc())
    finally:
        sys.argv = before
    return Outcome(code, out.getvalue(), err.getvalue(), crashed)


def judge(table: OddTable, outcome: Outcome) -> tuple[str, str]:
    """What came of a table, and a detail."""
    if outcome.crashed or "Traceback" in outcome.err:
        return "traceback", outcome.err[-500:]
    if outcome.code:
        last = outcome.err.strip().splitlines()[-1]
        return ("refused" if last.startswith("Error: ") else "traceback"), last
    wrong = compare(table, json.loads(outcome.out)["windows"])
    return ("silent mistake", wrong) if wrong else ("read right", "")


def compare(table: OddTable, windows: list[dict[str, Any]]) -> str:
    """The first difference between the windows of a command and those of the table; or nothing."""
    expected = expected_windows(table)
    several = len(table.series) > 1
    found = {(one.get("series", "a") if several else "a", one["first_row"]): one for one in windows}
    if found.keys() != expected.keys():
        return f"windows {sorted(found)[:3]} … for {sorted(expected)[:3]} …"
    for key, (first, last, score) in expected.items():
        one = found[key]
        if not np.isclose(one["score"], score, rtol=1e-4, atol=1e-6):
            return f"score {one['score']} for {score} at {key}"
        for name, wanted in (("from", first), ("to", last)):
            if not same_time(one.get(name), wanted, table):
                return f"{name} {one.get(name)} for {wanted} at {key}"
    return ""


def expected_windows(table: OddTable) -> dict[tuple[str, int], tuple[Any, Any, float]]:
    """First time, last time and score of every window, by series and first row."""
    filled = {name: fill_gaps(values) for name, (_, values) in table.series.items()}
    scaler = ChannelScaler.fit(filled.values())
    found = {}
    for name, (grid, _) in table.series.items():
        scores = score_windows(scaler.transform(filled[name]), WINDOW, WINDOW)
        for place, score in enumerate(scores):
            first = place * WINDOW
            found[name, first + 1] = (grid[first], grid[first + WINDOW - 1], float(score))
    return found


def same_time(found: Any, wanted: pd.Timestamp, table: OddTable) -> bool:
    """Whether a time came back as it was written, as an instant if it has a zone."""
    if isinstance(found, int | float):
        written = write_times(pd.DatetimeIndex([wanted]), table.facts["style"])[0]
        return int(found) == int(written)
    if found is None:
        return False
    when = pd.Timestamp(found)
    if wanted.tz is None:
        when = when.tz_localize(None)
    elif when.tz is None:
        return False
    else:
        when = when.tz_convert(wanted.tz)
    return bool(when == wanted)


def shape_of(sentence: str) -> str:
    """A refusal without what differs from table to table."""
    text = re.sub(r"\S*odd_\d+\S*", "FILE", sentence)
    return re.sub(r"'[^']*'|[\d:.+-]+", "…", text)[:110]


if __name__ == "__main__":
    main()
