"""From a part of a grid, or from a file, to findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.grid import JobGroup
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import Experiment
    from sacm.experiments.named.findings import Findings


def find_groups(experiment: Experiment, selection: Selection, runs: Path) -> list[JobGroup]:
    """The selected part of the grid, with its jobs."""
    from sacm.experiments.grid import Grid
    from sacm.experiments.named.experiment import points

    return Grid(selection, runs).groups(points(experiment, selection))


def tabulate_with_notes(
    experiment: Experiment, selection: Selection, groups: Sequence[JobGroup], runs: Path
) -> Findings:
    """What the runs say, with what departs from the declared grid."""
    from sacm.experiments.named.collect import collect
    from sacm.experiments.named.experiment import points
    from sacm.experiments.named.tabulate import tabulate

    declared = [point.keys for point in points(experiment, replace(selection, horizons=()))]
    settings = part_of(selection)
    notes = [f"{name} {value} for every run" for name, value in settings.items()]
    absent = dict.fromkeys(group.absent for group in groups if group.absent is not None)
    if absent:
        notes.append(f"not on this machine, so their runs are not looked for: {', '.join(absent)}")
    found = collect(experiment, groups, runs)
    small = dict.fromkeys(str(group.keys["backbone"]) for group in found if group.size == "small")
    if small:
        notes.append(f"small size, not the paper's: {', '.join(small)}")
    notes = [f"{note[0].upper()}{note[1:]}." for note in notes]
    return tabulate(experiment, found, declared=declared, settings=settings, notes=notes)


def part_of(selection: Selection) -> dict[str, Any]:
    """What every run had instead of the paper's settings, horizons or seeds."""
    lists = {"horizon": selection.horizons, "seed": selection.seeds}
    parts = {name: ", ".join(map(str, values)) for name, values in lists.items() if values}
    return {**selection.settings, **parts}


def read_results(path: Path, name: str) -> Findings:
    """Findings of one experiment from a file, or from `NAME.json` in a folder."""
    from sacm.cli.runs import as_user_error
    from sacm.experiments.named.tabulate import read_findings

    file = path / f"{name}.json" if path.is_dir() else path
    if not file.exists():
        raise ArgumentError(
            f"there is no {file}: make it with sacm paper report {name} --format json --out {file}."
        )
    with as_user_error():
        return read_findings(file)
