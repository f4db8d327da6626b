"""The tables of results/quality/sensor_faults/README.md, from the files beside it.

python -m benchmarks.sensor_fault_tables results/quality/sensor_faults
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sacm.reports.table import Table
from sacm_lab.commands import write_between
from sacm_lab.robust.faults import TESTED

FIRST = "data, network, seed"
COSTS = ("no evidence", "as they come", "all stuck", "all faulty")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    write_between(folder / "README.md", "sensor_faults", make_tables(records))


def make_tables(records: list[dict[str, Any]]) -> str:
    """One table of errors, one of degradations by fault, one of costs; means over seeds first."""
    said = [line for record in records for line in (describe_seeds(record), *describe_mean(record))]
    tables = [error_table(records), degradation_table(records), cost_table(records)]
    titles = [
        "Errors, raw → protected:",
        "D by fault, raw → protected:",
        "Time of the protected network over the raw one's:",
    ]
    parts = ["\n".join(f"- {line}" for line in said)]
    for title, table in zip(titles, tables, strict=True):
        parts += [title, table.markdown()]
    return "\n\n".join(parts)


def describe_seeds(record: dict[str, Any]) -> str:
    """What protecting does, on the mean over seeds with their deviation."""
    pairs = [(one["raw"], one["protected"]) for one in record["seeds"].values()]

    def both(name: str) -> str:
        return " → ".join(spread([pair[side][name] for pair in pairs]) for side in (0, 1))

    def change(name: str) -> str:
        return spread([100 * (own[name] / raw[name] - 1) for raw, own in pairs], digits=1)

    return (
        f"{network(record)}, n = {len(pairs)}: D_w {both('D_w')}, stuck sensor "
        f"{both('stuck_sensor')}, missing data {both('missing_data')}; mean fault MSE "
        f"{change('mean_fault')} %, clean MSE {change('clean')} %: {both('clean')}"
    )


def describe_mean(record: dict[str, Any]) -> list[str]:
    """What the mean forecast of all networks does, against the mean of the raw ones alone."""
    if "together" not in record:
        return []
    alone = [one["raw"] for one in record["seeds"].values()]
    parts = []
    for name in ("raw", "protected"):
        own = record["together"][name]
        changes = (
            100 * (own[figure] / np.mean([raw[figure] for raw in alone]) - 1)
            for figure in ("mean_fault", "clean")
        )
        mean, clean = (f"{change:+.1f} %" for change in changes)
        parts.append(f"{name} D_w {own['D_w']:.3f}, mean fault MSE {mean}, clean MSE {clean}")
    return [
        f"{network(record)}, the mean forecast of all {len(alone)} networks against the mean error "
        f"of the raw ones: {'; '.join(parts)}"
    ]


def error_table(records: list[dict[str, Any]]) -> Table:
    """Clean and mean fault error and D_w with their intervals, one line a network."""
    lines = []
    for record in records:
        for seed, one in record["seeds"].items():
            raw, own, ends = one["raw"], one["protected"], one["intervals"]
            changes = {name: own[name] / raw[name] - 1 for name in ("clean", "mean_fault")}
            low, high = ends["D_w"]
            lines.append(
                (
                    f"{network(record)}, {seed}",
                    f"{raw['clean']:.4f} → {own['clean']:.4f}",
                    in_percent(changes["clean"], ends["clean_change"]),
                    f"{raw['mean_fault']:.4f} → {own['mean_fault']:.4f}",
                    in_percent(changes["mean_fault"], ends["mean_fault_change"]),
                    f"{raw['D_w']:.3f} → {own['D_w']:.3f} [{low:.3f}, {high:.3f}]",
                )
            )
    figures = ("clean MSE", "change [95 %]", "mean fault MSE", "change [95 %]", "D_w [95 %]")
    return as_table((FIRST, *figures), lines)


def degradation_table(records: list[dict[str, Any]]) -> Table:
    lines = [
        (
            f"{network(record)}, {seed}",
            *(f"{one['raw'][fault]:.3f} → {one['protected'][fault]:.3f}" for fault in TESTED),
        )
        for record in records
        for seed, one in record["seeds"].items()
    ]
    names = (fault.replace("_", " ") for fault in TESTED)
    return as_table((FIRST, *names), lines)


def cost_table(records: list[dict[str, Any]]) -> Table:
    lines = [
        (
            f"{network(record)}, {seed}",
            f"{one['cost']['share_without_evidence']:.0%}",
            *(f"{one['cost'][name]:.2f}" for name in COSTS),
        )
        for record in records
        for seed, one in record["seeds"].items()
    ]
    return as_table((FIRST, "windows without evidence", *COSTS), lines)


def as_table(headings: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Table:
    return Table(headings, tuple(lines))


def network(record: dict[str, Any]) -> str:
    settings = record["settings"]
    return f"{settings['data']}, {settings['backbone']} {settings['size']}"


def spread(values: list[float], *, digits: int = 3) -> str:
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def in_percent(change: float, ends: list[float]) -> str:
    low, high = (100 * end for end in ends)
    return f"{100 * change:+.1f} % [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    main()
