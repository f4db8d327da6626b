"""Finished runs below a folder, and which of them belong together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from sacm.data.synth12 import NAME
from sacm.errors import SACMError
from sacm.training.run import Run

DEFAULT_LEVEL = 0.5


def finished_runs(folder: Path, task: str) -> list[Run]:
    """The finished runs of a task, at any depth, in the order of their names."""
    found = []
    for path in sorted(folder.rglob("config.json")):
        run = Run(path.parent)
        if not run.finished:
            continue
        try:
            wanted = run.settings.task == task
        except (ValidationError, TypeError):
            raise SACMError(f"{run.folder} is damaged: delete it or train it again.") from None
        if wanted:
            found.append(run)
    return found


def noise_level(data: str) -> float | None:
    """The level of Synth-12 that a data name asks for; None for other data."""
    base, _, level = data.partition("@")
    if base.lower().replace("-", "") != NAME.lower().replace("-", ""):
        return None
    return float(level) if level else DEFAULT_LEVEL


def alike(runs: Iterable[Run], *fields: str) -> list[list[Run]]:
    """Runs that share all settings but these fields, in the order of the runs."""
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        shared = run.settings.model_dump(exclude=set(fields))
        groups[json.dumps(shared, sort_keys=True)].append(run)
    return list(groups.values())


def title(run: Run) -> str:
    """The backbone, with its size if that is not the paper's."""
    settings = run.settings
    return settings.backbone + ("" if settings.size == "paper" else f" ({settings.size})")


def unsuitable(folder: Path, what: str, experiment: str) -> SACMError:
    """There is nothing to draw from: how to get it."""
    return SACMError(
        f"{folder} holds no finished {what}: make them with `sacm paper run {experiment}`."
    )
