"""Finished runs below a folder, and which of them belong together."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

from pydantic import ValidationError

from sacm.data.load import SYNTH12
from sacm.errors import SACMError, SACMWarning
from sacm.training.run import Run

DEFAULT_LEVEL = 0.5
TITLE_WIDTH = 40  # characters above a third of a sheet


def finished_runs(folder: Path, task: str) -> list[Run]:
    """The finished runs of a task, at any depth, in the order of their names.

    One that is damaged is left out, with a warning that names it.
    """
    if not folder.is_dir():
        raise SACMError(
            f"there is no folder {folder} with runs: name another, or make some with "
            "`sacm paper run`."
        )
    found = []
    for path in sorted(folder.rglob("config.json")):
        run = Run(path.parent)
        if not run.tested:
            continue
        if is_damaged(run):
            text = f"{run.folder} is damaged and left out: delete it or train it again."
            warnings.warn(text, SACMWarning, stacklevel=2)
        elif run.settings.task == task:
            found.append(run)
    return found


def is_damaged(run: Run) -> bool:
    """Whether the settings or the results of a finished run cannot be read."""
    try:
        _ = run.settings
        return not (run.metrics and isinstance(run.metrics, dict))
    except (SACMError, ValidationError, TypeError):
        return True


def has_results(run: Run, *measures: str) -> bool:
    """Whether a run has all these test results: one without test rows has none."""
    row = run.metrics.get("test") or {}
    return all(row.get(measure) is not None for measure in measures)


def noise_level(data: str) -> float | None:
    """The level of Synth-12 that a data name asks for; None for other data."""
    base, _, level = data.partition("@")
    if base.lower().replace("-", "") != SYNTH12.lower().replace("-", ""):
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


def titles(runs: Sequence[Run], *but: str) -> list[str]:
    """The title of each, and below it the settings, none of `but`, that are not the same in all."""
    shown = [run.settings.model_dump(exclude={"backbone", "size", *but}) for run in runs]
    differing = [
        name
        for name in (shown[0] if shown else {})
        if any(settings[name] != shown[0][name] for settings in shown)
    ]
    details = [", ".join(f"{name} {settings[name]}" for name in differing) for settings in shown]
    return [
        f"{title(run)}\n{fill(detail, TITLE_WIDTH)}" if detail else title(run)
        for run, detail in zip(runs, details, strict=True)
    ]


def unsuitable(folder: Path, what: str, experiment: str) -> SACMError:
    """There is nothing to draw from: how to get it."""
    return SACMError(
        f"{folder} holds no finished {what}: make them with `sacm paper run {experiment}`."
    )
