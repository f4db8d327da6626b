"""Findings of one protocol that were written in several files, as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from sacm.errors import DataError
from sacm.experiments.grid_points import Key
from sacm.experiments.named.experiment import Experiment
from sacm.experiments.named.findings import Findings, Group, RunFinding
from sacm.experiments.named.tabulate import runs_unlike, tabulate
from sacm_lab.robust.choose import VARIED
from sacm_lab.robust.findings import RobustFindings, read_robust_findings
from sacm_lab.robust.protocols import ON_CLEAN, PROTOCOLS
from sacm_lab.robust.recovered import recovered_shares

Place = tuple[tuple[str, Key], ...]


def read_protocols(path: Path) -> list[RobustFindings]:
    """The findings of a file, or of all JSON files of a folder: one for each protocol.

    Raises:
        DataError: There is no such file or folder, a file holds something else, a folder nothing,
            or two files hold different runs of the same strategy in the same place.
    """
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(
            f"{path} holds no findings: make some with sacm robust report --format json."
        )
    return join_findings([read_robust_findings(file) for file in files])


def join_findings(found: Sequence[RobustFindings]) -> list[RobustFindings]:
    """Findings of the same protocol as one, tabulated anew over the groups of all of them."""
    by_name: dict[str, list[Findings]] = {}
    for one in found:
        by_name.setdefault(one.findings.name, []).append(one.findings)
    whole = {one.findings.name: one for one in found}
    return [
        whole[name] if len(parts) == 1 else _join(name, parts) for name, parts in by_name.items()
    ]


def _join(name: str, parts: Sequence[Findings]) -> RobustFindings:
    groups = _join_groups([group for part in parts for group in part.groups])
    experiment = _widen(PROTOCOLS.get(name), parts, groups)
    said = (
        note
        for part in parts
        for note in part.notes
        if note not in experiment.notes and note not in runs_unlike(part.groups)
    )
    found = tabulate(experiment, groups, notes=tuple(dict.fromkeys(said)))
    shares = recovered_shares(found) if ON_CLEAN in experiment.references else []
    return RobustFindings(found, tuple(shares))


def _widen(
    experiment: Experiment, parts: Sequence[Findings], groups: Sequence[Group]
) -> Experiment:
    """A protocol with everything that its parts were run with."""

    def named(key: str) -> tuple[str, ...]:
        return _distinct(str(group.keys[key]) for group in groups if group.keys.get(key))

    strategies = _distinct(name for part in parts for name in part.strategies)
    vary = dict(experiment.vary)
    if VARIED in vary:
        vary[VARIED] = named(VARIED)
    return replace(
        experiment,
        datasets=named("data"),
        backbones=named("backbone"),
        strategies=tuple(name for name in strategies if name not in experiment.references),
        vary=vary,
    )


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _join_groups(groups: Sequence[Group]) -> list[Group]:
    """Groups in the order they first come in; the same place of two files is one group."""
    places: dict[Place, Group] = {}
    for group in groups:
        place = (*sorted(group.keys.items()), ("size", group.size))
        places[place] = _add_runs(places[place], group) if place in places else group
    return list(places.values())


def _add_runs(group: Group, other: Group) -> Group:
    """The runs of both; one that is done stands for one that is not."""
    runs: dict[str, RunFinding] = {run.strategy: run for run in group.runs}
    for run in other.runs:
        before = runs.get(run.strategy)
        if before is None or before.state != "done":
            runs[run.strategy] = run
        elif run.state == "done" and (run.run, run.values) != (before.run, before.values):
            where = ", ".join(f"{key} {value}" for key, value in group.keys.items())
            raise DataError(
                f"two files hold different runs of {run.strategy} ({where}): {before.run} and "
                f"{run.run}; leave one of the files out."
            )
    return replace(group, runs=tuple(runs.values()))
