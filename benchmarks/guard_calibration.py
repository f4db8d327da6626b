"""Do the guard's two promises hold: the number of false events, and the intervals of repairs?

False events: fail events on simulated rows without any fault, by the setting `false_events`.
Intervals: stretches of 1, 4, 16 and 64 rows are hidden from real tables, in the inspected table or
in the rows after those that a guard was fitted on; the share of their values in the 90 % interval.

    python -m benchmarks.guard_calibration --out results/guard
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

import sacm
from benchmarks.guard_ridge import DEVELOPMENT, FRESH, load_rows
from sacm.quality.repair import HIDDEN, INTERVAL, hide_stretches

Array = np.ndarray
SETTINGS = (0.1, 1.0, 10.0, 100.0)
ROWS, CHANNELS, SEEDS = 20_000, 5, 3


def simulate(kind: str, seed: int) -> Array:
    """Rows `[T, C]` of one kind without a fault."""
    generator = np.random.default_rng(seed)
    shape, time = (ROWS, CHANNELS), np.arange(ROWS)[:, None]
    noise = generator.standard_normal(shape)
    if kind == "Laplace noise":
        return generator.laplace(size=shape)
    if kind == "t noise, 4 degrees":
        return generator.standard_t(4, shape)
    if kind == "sine and Gaussian noise":
        return np.sin(2 * np.pi * time / 24 + np.arange(CHANNELS)) + 0.2 * noise
    if kind == "random walk":
        return noise.cumsum(0)
    if kind == "autoregression, .9":
        for row in range(1, ROWS):
            noise[row] += 0.9 * noise[row - 1]
    return noise


KINDS = (
    "Gaussian noise",
    "sine and Gaussian noise",
    "autoregression, .9",
    "random walk",
    "Laplace noise",
    "t noise, 4 degrees",
)


def false_events(kind: str, setting: float) -> dict[str, Any]:
    """One line: fail and suspect events in 10,000 values."""
    tables = (simulate(kind, seed) for seed in range(SEEDS))
    found = [sacm.inspect(table, false_events=setting) for table in tables]
    grades = [event.grade for quality in found for event in quality.events]
    values = sum(quality.flags.size for quality in found)
    fail, suspect = (round(1e4 * grades.count(grade) / values, 2) for grade in (2, 1))
    return {"rows": kind, "false_events": setting, "fail": fail, "suspect": suspect}


def intervals(name: str, rows: int) -> dict[str, Any]:
    """One line: the share of hidden values inside the 90 % interval of their repair."""
    values = load_rows(name, rows).astype(float)
    later = values[int(0.7 * len(values)) :]
    guard = sacm.Guard(window=None).fit(values[: -len(later)])
    line: dict[str, Any] = {"table": name}
    for where, part, judge in (
        ("inspected_rows", values, sacm.inspect),
        ("later_rows", later, guard.inspect),
    ):
        normal = judge(part).grades == 0
        hidden = hide_stretches(part.shape, HIDDEN, seed=7)
        quality = judge(np.where(hidden, np.nan, part))
        near = np.abs(quality.values - part) <= INTERVAL * quality.uncertainty
        line[where] = round(float(near[hidden & normal].mean()), 3)
    return line


def main() -> None:
    """Print both tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    tables = {**DEVELOPMENT, **FRESH}
    for file, found in {
        "false_events.csv": (false_events(kind, at) for kind in KINDS for at in SETTINGS),
        "intervals.csv": (intervals(name, rows) for name, (rows, _) in tables.items()),
    }.items():
        lines = []
        for line in found:
            print(line, flush=True)
            lines.append(line)
        with (out / file).open("w", newline="") as opened:
            writer = csv.DictWriter(opened, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
