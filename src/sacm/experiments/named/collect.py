"""What the runs of an experiment's grid say, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sacm.errors import SACMError
from sacm.experiments.grid import JobGroup
from sacm.experiments.jobs import Job, check_file, status, transfer_file
from sacm.experiments.named.experiment import BEST_FIXED, Experiment
from sacm.experiments.named.findings import EpochFinding, Group, RunFinding, State
from sacm.files import read_json
from sacm.metrics.catalogue import metric
from sacm.training.run import Run

_LAST_EPOCHS = 10


def collect(experiment: Experiment, groups: Sequence[JobGroup], folder: Path) -> list[Group]:
    """Read every run of the grid; a run that is not there is named with the reason."""
    return [_group(experiment, group, folder) for group in groups]


def _group(experiment: Experiment, group: JobGroup, folder: Path) -> Group:
    if group.absent is not None:
        reason = f"{group.absent} is not on this machine: sacm data get {group.absent!r}"
        runs = [RunFinding(name, "missing", reason) for name in experiment.run_rows]
    else:
        rows = zip(group.point.strategies, group.jobs, strict=True)
        runs = [_run(experiment, name, job, folder) for name, job in rows]
    if BEST_FIXED in experiment.shown_strategies:
        runs.append(_best_fixed(group, runs, folder))
    return Group(group.point.keys, group.size, tuple(runs))


def _run(experiment: Experiment, name: str, job: Job, folder: Path) -> RunFinding:
    try:
        found = status(job, folder)
        if found.state != "done":
            state: State = "missing" if found.state == "missing" else "failed"
            return RunFinding(name, state, found.reason)
        return _finished(experiment, name, job, Run(folder / job.run_id))
    except (SACMError, OSError, LookupError, TypeError, ValueError) as error:
        # One folder that was cut or edited must not take the table with it.
        kind = type(error).__name__
        reason = str(error) if isinstance(error, SACMError) else f"{kind}: {error}"
        return RunFinding(name, "failed", f"{job.run_id} is damaged: {reason}")


def _finished(experiment: Experiment, row: str, job: Job, run: Run) -> RunFinding:
    values = {**_costs(run), **run.row, **_watched(run)}
    if job.targets:
        values.update(read_json(run.folder / transfer_file(job.targets[0]))["test"])
    if row in experiment.own_checks:  # what the run itself reached is another row
        values = {}
    for check in job.checks:
        values.update(read_json(run.folder / check_file(check))["test"])
    references = (metric(name).random for name in experiment.metrics)
    names = (*experiment.metrics, *(name for name in references if name))
    kept = {name: values.get(name) for name in names}
    return RunFinding(
        row,
        "done",
        run=job.run_id,
        made_with=_made_with(run.folder / "environment.json"),
        values={name: float(value) for name, value in kept.items() if value is not None},
        epochs=run.metrics["epochs"],
        seconds=run.metrics["train_seconds"],
        history=tuple(_epoch(row) for row in run.history),
    )


def _made_with(path: Path) -> str | None:
    """Code, torch and threads: what the halves of a pair should share."""
    if not path.exists():
        return None
    found = read_json(path)
    packages, threads = found["packages"], found["threads"]
    commit = (found["git"] or "")[:7] + (", changed" if found["git_changed"] else "")
    code = f"sacm {packages['sacm']}" + (f" ({commit})" if commit else "")
    return f"{code}, torch {packages['torch']}, {threads} thread{'' if threads == 1 else 's'}"


def _costs(run: Run) -> dict[str, float | None]:
    metrics, last = run.metrics, run.history[-1]
    seconds, epochs = metrics["train_seconds"], metrics["epochs"]
    rates: dict[str, float | None] = {
        name: float(last[name]) for name in ("rate_mean", "rate_std") if name in last
    }
    return {
        "epochs": epochs,
        "train_seconds": seconds,
        "seconds_per_epoch": seconds / epochs,
        **rates,
    }


def _watched(run: Run) -> dict[str, float | None]:
    """Means of the test results after each of the last ten epochs, where they were tested."""
    last = run.history[-_LAST_EPOCHS:]
    names = [name for name in last[-1] if name.startswith("test_") and last[-1][name]]
    return {
        f"{name.removeprefix('test_')}_last_ten": sum(float(row[name]) for row in last) / len(last)
        for name in names
    }


def _epoch(row: dict[str, str]) -> EpochFinding:
    validation = next(value for name, value in row.items() if name.startswith("val_"))
    return EpochFinding(
        epoch=int(row["epoch"]),
        train_loss=_short(row["train_loss"]),
        validation=_short(validation),
        rate_mean=_short(row["rate_mean"]) if "rate_mean" in row else None,
        rate_std=_short(row["rate_std"]) if "rate_std" in row else None,
    )


def _short(text: str) -> float:
    return float(f"{float(text):.5g}")  # enough for a curve, and a small file


def _best_fixed(group: JobGroup, runs: Sequence[RunFinding], folder: Path) -> RunFinding:
    """The fixed rate that validation chooses, ties to the smaller; only if all rates are there."""
    fixed = [run for run in runs if run.strategy.startswith("fixed(")]
    undone = [run for run in fixed if run.state != "done"]
    if undone or not fixed:
        state: State = "failed" if any(run.state == "failed" for run in undone) else "missing"
        return RunFinding(BEST_FIXED, state, "not every fixed rate has been run")
    best = min(fixed, key=lambda run: _validation(folder / str(run.run)))
    return replace(best, strategy=BEST_FIXED, chosen=best.strategy)


def _validation(folder: Path) -> float:
    metrics: dict[str, Any] = Run(folder).metrics
    return float(next(value for name, value in metrics.items() if name.startswith("best_val_")))
