"""From the runs of a protocol to what it found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sacm.experiments.grid import Grid, JobGroup
from sacm.experiments.grid_points import Selection
from sacm.experiments.named.collect import collect
from sacm.experiments.named.experiment import Experiment, points
from sacm.experiments.named.tabulate import tabulate
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.protocols import ON_CLEAN
from sacm_lab.robust.recovered import recovered_shares


def find_protocol_groups(
    experiment: Experiment, selection: Selection, runs: Path
) -> list[JobGroup]:
    """The grid of a protocol, with its jobs."""
    return Grid(selection, runs).groups(points(experiment, selection))


def gather(
    experiment: Experiment,
    selection: Selection,
    groups: Sequence[JobGroup],
    runs: Path,
    *,
    notes: Sequence[str] = (),
) -> RobustFindings:
    """Read every run and make tables of them.

    Args:
        experiment: The protocol as it was chosen.
        selection: Sizes and settings of the runs.
        groups: Its grid.
        runs: The folder that holds the runs.
        notes: Sentences for the report.
    """
    settings = {**experiment.fixed, **selection.settings}
    words = [f"{name.replace('_', ' ')} {value}" for name, value in settings.items()]
    own = [
        f"{data}: {name} {value}"
        for data, changed in experiment.by_data.items()
        for name, value in changed.items()
        if data in experiment.datasets and name not in selection.settings
    ]
    sizes = ", ".join(sorted({group.size for group in groups}))
    said = [f"Size {sizes}; {', '.join((*words, *own))}."] if groups else []
    absent = dict.fromkeys(group.absent for group in groups if group.absent is not None)
    if absent:
        said.append(f"Not on this machine, so their runs are not looked for: {', '.join(absent)}.")
    found = tabulate(
        experiment,
        collect(experiment, groups, runs),
        settings={name: str(value) for name, value in selection.settings.items()},
        notes=[*said, *notes],
    )
    shares = recovered_shares(found) if ON_CLEAN in experiment.references else []
    return RobustFindings(found, tuple(shares))
