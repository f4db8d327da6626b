"""Events that the guard reports on rows nobody broke, by grade, in 10,000 values.

Twelve tables of the ridge benchmark, a sine with Gaussian noise, and three tables of users whose
holidays, storms and crises are real.

    python -m benchmarks.guard_untouched --out results/guard/untouched.csv
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

import sacm
from benchmarks.guard_ridge import DEVELOPMENT, FRESH, load_rows

USERS = ("MTA_Daily_Ridership.csv", "us_gasoline.csv", "sp500-2000.csv")


def measure(name: str, data: Any, part: str) -> dict[str, Any]:
    """One line: fail and suspect events, and the kinds of fail values."""
    quality = sacm.inspect(data)
    size = quality.flags.size / 1e4
    values = [event for event in quality.events if event.channel in quality.recording.columns]
    fail = [event for event in values if event.grade == 2 and event.kind != "missing"]
    kinds = {kind: sum(event.kind == kind for event in fail) for kind in quality.kinds[1:]}
    return {
        "table": name,
        "part": part,
        "values": quality.flags.size,
        "fail_events": round(len(fail) / size, 2),
        "suspect_events": round(sum(event.grade == 1 for event in values) / size, 2),
        "fail_percent": round(100 * quality.share, 3),
        "suspect_percent": round(100 * float((quality.grades == 1).mean()), 3),
        "kinds": " ".join(f"{kind}:{count}" for kind, count in kinds.items() if count),
    }


def main() -> None:
    """Write one line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fresh", action="store_true", help="confirmation rows as well")
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(os.environ["SACM_DATA"])
    lines = []
    for part, sets in (
        ("development", DEVELOPMENT),
        ("confirmation", FRESH if asked.fresh else {}),
    ):
        for name, (rows, _) in sets.items():
            values = load_rows(name, rows)
            lines.append(measure(name, values[: int(0.8 * len(values))].astype(float), part))
            print(lines[-1], flush=True)
    sine = np.sin(np.arange(20_000) / 4)[:, None]
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(0, 0.1, (20_000, 5))
        lines.append(measure(f"sine and noise, seed {seed}", sine + noise, "normal"))
        print(lines[-1], flush=True)
    for name in USERS:
        lines.append(measure(name, folder / "users" / name, "users"))
        print(lines[-1], flush=True)
    with asked.out.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    for part in ("development", "confirmation", "normal", "users"):
        own = [line["fail_events"] for line in lines if line["part"] == part]
        if own:
            print(f"{part}: mean fail events {np.mean(own):.2f} in 10,000 values")


if __name__ == "__main__":
    main()
