"""Flags of the guard against experts' labels of real sensors, without and with rules.

Files of `$SACM_DATA/faults` (Logan River, a NOAA tide gauge, a NERRS station). A fault is a value
that the experts removed, or changed by more than a tenth of its channel's deviation; drift (code
10), suspects, gaps and marked values that were kept count neither way. The rules are written from
data sheets and manuals; results/guard/README.md says which were written with scores in view.

    python -m benchmarks.guard_experts --out results/guard/experts.csv
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

import sacm

Array = np.ndarray
ROWS = 20_000
GAPS = (-9999, -(2**31))  # loggers', and R's for integers
# One file of rules for each network, from data sheets and manuals: what its sensors can measure,
# how fast water can change, how long a sensor of that resolution may show one number, and which
# readings a sonde computes from, or compensates for, temperature and conductivity.
RULES: dict[str, dict[str, dict[str, Any]]] = {
    "logan": {  # a sonde, a DTS-12 for turbidity, a CS450 for the stage in cm
        "all": {"codes": [-9999]},
        "temp": {"range": [-2, 40], "max_change": "8/h"},
        "cond": {"range": [10, 7000], "longest_rest": "12 h", "needs": ["temp"]},
        "ph": {"range": [2, 12], "max_change": "2/h", "longest_rest": "24 h", "needs": ["temp"]},
        "do": {"range": [0.05, 50], "longest_rest": "12 h", "needs": ["temp"]},
        "turb": {"range": [0, 1600], "longest_rest": "12 h"},
        "stage": {"max_change": "50/h", "longest_rest": "48 h"},
    },
    "noaa": {  # tide and surge within 4 m of the mean level, in the datum of the gauge
        "water_level": {"range": [3.6, 11.6], "longest_rest": "6 h"},
    },
    "swmp": {
        "all": {"codes": [GAPS[1]]},
        "temp": {"range": [-2, 40], "max_change": "8/h"},
        "spcond": {"range": [0.05, 100], "longest_rest": "12 h", "needs": ["temp"]},
        "sal": {"range": [0, 70], "longest_rest": "24 h", "needs": ["temp", "spcond"]},
        "do_pct": {"range": [0.05, 500], "longest_rest": "12 h", "needs": ["temp"]},
        "do_mgl": {"range": [0.05, 50], "longest_rest": "12 h", "needs": ["do_pct", "sal"]},
        "depth": {"range": [0, 10], "longest_rest": "12 h", "needs": ["sal"]},
        "ph": {"range": [2, 12], "max_change": "2/h", "longest_rest": "24 h", "needs": ["temp"]},
        "turb": {"range": [0, 1000], "longest_rest": "12 h"},
    },
}


def truth(data: dict[str, Any]) -> tuple[Array, Array]:
    """Faults `[T, C]`, and values that count neither way."""
    values, corrected = data["values"][:ROWS], data["corrected"][:ROWS]
    codes, labels = data["codes"][:ROWS], data["labels"][:ROWS] > 0
    gap = ~np.isfinite(values) | np.isin(values, GAPS)
    scale = np.array(
        [np.nanstd(values[~labels[:, c] & ~gap[:, c], c]) or 1 for c in range(values.shape[1])]
    )
    moved = np.abs(np.where(gap, np.nan, values) - corrected) > 0.1 * scale
    fault = labels & (np.isnan(corrected) | moved)
    unknown = (labels & ~fault) | (codes == "10") | gap
    if codes.dtype.kind == "U":
        unknown |= np.char.startswith(codes, "<1>")
    fault &= ~gap & (codes != "10")
    return fault, unknown & ~fault


def measure(flags: Array, fault: Array, unknown: Array) -> dict[str, float]:
    """Counts of values and events."""
    counted = ~unknown
    true, false = int((flags & fault).sum()), int((flags & ~fault & counted).sum())
    missed = int((~flags & fault).sum())
    met = events = false_events = 0
    for channel in range(fault.shape[1]):
        edges = np.diff(np.concatenate([[0], fault[:, channel].astype(int), [0]]))
        for first, stop in zip(
            np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True
        ):
            events += 1
            met += bool(flags[first:stop, channel].mean() >= 0.5)
        wrong = flags[:, channel] & ~fault[:, channel] & counted[:, channel]
        false_events += int((np.diff(np.concatenate([[0], wrong.astype(int)])) == 1).sum())
    return {
        "precision": round(true / max(1, true + false), 3),
        "recall": round(true / max(1, true + missed), 3),
        "f1": round(2 * true / max(1, 2 * true + false + missed), 3),
        "events": events,
        "events_found": met,
        "false_events": false_events,
    }


def main() -> None:
    """Write one line for each file, with and without rules, by grade."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for path in sorted((Path(os.environ["SACM_DATA"]) / "faults").glob("*.npz")):
        data = dict(np.load(path, allow_pickle=True))
        fault, unknown = truth(data)
        if not fault.any():
            continue
        columns = [str(column) for column in data["columns"]]
        frame = pd.DataFrame(data["values"][:ROWS].astype(float), columns=columns)
        times = pd.to_datetime(data["times"][:ROWS])
        for rules in (None, RULES[path.stem.split("_")[0]]):
            frame.insert(0, "time", times)
            quality = sacm.inspect(frame, rules=rules, time="time")
            frame = frame.drop(columns="time")
            order = [quality.recording.columns.index(column) for column in columns]
            for name, least in (("fail and suspect", 1), ("fail", 2)):
                flags = quality.grades[:, order] >= least
                line = {"file": path.stem, "rules": "yes" if rules else "no", "grades": name}
                line |= measure(flags, fault, unknown)
                if name != "fail":
                    kinds = quality.flags[:, order]
                    line["by_kind"] = " ".join(
                        f"{kind}:{int(((kinds == k) & fault).sum())}/"
                        f"{int(((kinds == k) & ~fault & ~unknown).sum())}"
                        for k, kind in enumerate(quality.kinds)
                        if k > 1 and (kinds == k).any()
                    )
                lines.append(line)
                print(line, flush=True)
    with asked.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    for rules in ("no", "yes"):
        for grades in ("fail and suspect", "fail"):
            own = [x for x in lines if x["rules"] == rules and x["grades"] == grades]
            mean = np.mean([line["f1"] for line in own])
            events = sum(line["events_found"] for line in own)
            false = sum(line["false_events"] for line in own)
            print(f"rules {rules}, {grades}: mean F1 {mean:.3f}, events {events}, false {false}")


if __name__ == "__main__":
    main()
