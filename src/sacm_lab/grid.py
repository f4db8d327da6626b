"""Runs of a grid: what a job is, how far it is, how it is done, and how all of them are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from filelock import FileLock

from sacm.data import resolve
from sacm.data.datasets import fingerprint
from sacm.errors import SACMError
from sacm.files import read_json, write_json
from sacm.inference import Predictor
from sacm.settings import ResolvedSettings
from sacm.tasks import get_task, make_settings
from sacm.training.run import Run
from sacm.types import TaskName
from sacm_lab import CHECKS

State = Literal["done", "failed", "interrupted", "missing"]
_TIMED_STEPS = 3  # after one that is not timed: it includes what is made once


@dataclass(frozen=True)
class Job:
    """A run by its complete settings.

    Attributes:
        settings: What is trained.
        run_id: The name of its folder.
        targets: Data sets to test the finished model on.
        checks: Names of what else it is tested by.
    """

    settings: ResolvedSettings
    run_id: str
    targets: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    @classmethod
    def make(
        cls, settings: dict[str, Any], *, targets: Sequence[str] = (), checks: Sequence[str] = ()
    ) -> Job:
        """Complete settings for their data, and name the run."""
        asked = make_settings(**settings)
        data, mark = _load_with_fingerprint(asked.data, asked.task, asked.split)
        resolved = get_task(asked.task).resolve(asked, data)
        return cls(resolved, resolved.run_id(mark), tuple(targets), tuple(checks))

    def files(self) -> list[str]:
        """What is there when it is done."""
        transfers = [transfer_file(target) for target in self.targets]
        return ["metrics.json", *transfers, *map(check_file, self.checks)]


@dataclass(frozen=True)
class Status:
    """How far a job is; `reason` says why it failed or was interrupted."""

    state: State
    reason: str | None = None


def status(job: Job, folder: Path) -> Status:
    """What the run folder says.

    A run that was killed continues when it is asked for again; one that failed by itself would
    fail again. One with a damaged result has failed.
    """
    run = folder / job.run_id
    if all((run / name).exists() for name in job.files()):
        reason = next(filter(None, (find_damage(run / name) for name in job.files())), None)
        return Status("done") if reason is None else Status("failed", reason)
    if not (run / "failure.json").exists():
        return Status("missing")
    try:
        record = read_json(run / "failure.json")
        return Status("interrupted" if record.get("killed") else "failed", str(record["reason"]))
    except (SACMError, AttributeError, LookupError, TypeError):
        return Status("failed", f"{run / 'failure.json'} is damaged.")


def find_damage(path: Path) -> str | None:
    """Why a file of results cannot be used; None if it can."""
    needed = ("test", "epochs", "train_seconds") if path.name == "metrics.json" else ("test",)
    try:
        record = read_json(path)
    except SACMError as error:
        return str(error)
    absent = [name for name in needed if not isinstance(record, dict) or name not in record]
    return f"{path} is damaged: it holds no {absent[0]}." if absent else None


def execute(job: Job, folder: Path) -> None:
    """Train, or continue; then test on the targets. Two processes never do the same run at once.

    Damaged results are made anew.
    """
    # Lightning takes seconds to import, and who only plans has no use for it.
    from sacm.training.hardware import Hardware
    from sacm.training.trainer import train

    locks = folder / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{job.run_id}.lock"):
        settings = job.settings
        data, mark = _load_with_fingerprint(settings.data, settings.task, settings.split)
        if settings.run_id(mark) != job.run_id:
            raise SACMError(
                f"{settings.data} on this worker differs from the driver's: give every worker the "
                "same files."
            )
        for path in (folder / job.run_id / name for name in job.files()):
            if path.exists() and find_damage(path) is not None:
                path.unlink()
        run = train(settings, folder=folder, hardware=Hardware(show_progress=False), data=data)
        for target in job.targets:
            if not (run.folder / transfer_file(target)).exists():
                write_json(run.folder / transfer_file(target), transfer(run, target))
        for check in job.checks:
            if not (run.folder / check_file(check)).exists():
                write_json(run.folder / check_file(check), CHECKS.get(check)(run, data))


def transfer(run: Run, target: str) -> dict[str, Any]:
    """Test a finished run on other data, scaled by those data's own training part."""
    other = load_data(target, run.settings.task)
    if other.channels != run.shape.channels:
        raise SACMError(
            f"{target} has {other.channels} channels, {run.settings.data} has "
            f"{run.shape.channels}: a model cannot move between them."
        )
    windows = get_task(run.settings.task).windows(run.settings, other)
    result = run.task.evaluate(Predictor.load(run).trained, windows, other)
    return {"test": result.row, "evaluated_windows": result.evaluated}


def transfer_file(target: str) -> str:
    """Where the result on a target stands in the run folder."""
    return f"on_{target.replace(' ', '_')}.json"


def check_file(check: str) -> str:
    """Where the result of a check stands in the run folder."""
    return f"check_{check}.json"


def load_data(name: str, task: TaskName, split: tuple[float, ...] | None = None) -> Any:
    """A data set, in its own split or in other shares, kept for the next job of the process."""
    return _load_with_fingerprint(name, task, split)[0]


@lru_cache(maxsize=4)
def _load_with_fingerprint(
    name: str, task: TaskName, split: tuple[float, ...] | None
) -> tuple[Any, str]:
    data = resolve(name, task=task, reading={} if split is None else {"split": split})
    return data, fingerprint(data)


forget_data = _load_with_fingerprint.cache_clear


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `reason` says why there is no result, `killed` that it was not its fault."""

    job: Job
    reason: str | None = None
    killed: bool = False


class Engine(Protocol):
    """Runs jobs and reports each as it ends; takes the next one only when a worker is free."""

    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        """Results are in `folder` when the outcome is reported."""


@dataclass(frozen=True)
class Tally:
    """How many runs ended well, those that did not, and how many the budget left over."""

    done: int
    failed: tuple[Outcome, ...]
    left: int


def merge_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Every run once, with all targets and checks that any of its jobs wants."""
    merged: dict[str, Job] = {}
    for job in jobs:
        other = merged.get(job.run_id, job)
        targets = tuple(dict.fromkeys((*other.targets, *job.targets)))
        checks = tuple(dict.fromkeys((*other.checks, *job.checks)))
        merged[job.run_id] = replace(job, targets=targets, checks=checks)
    return list(merged.values())


def run_jobs(
    jobs: Sequence[Job],
    engine: Engine,
    folder: Path,
    *,
    budget: float | None = None,
    on_outcome: Callable[[Outcome], object] | None = None,
) -> Tally:
    """Run jobs in order; whatever happens to one is written down and stops nothing."""
    started, ended, failed = time.monotonic(), 0, []

    def admitted() -> Iterator[Job]:
        for job in jobs:
            if budget is not None and time.monotonic() - started > budget:
                return
            yield job

    for outcome in engine.run(admitted(), folder) if jobs else ():  # no cluster for nothing
        ended += 1
        if outcome.reason is not None:
            failed.append(outcome)
            record = {"reason": outcome.reason, "killed": outcome.killed}
            write_json(folder / outcome.job.run_id / "failure.json", record)
        if on_outcome is not None:
            on_outcome(outcome)
    return Tally(ended - len(failed), tuple(failed), len(jobs) - ended)


def time_epoch(job: Job) -> float:
    """Seconds of one epoch of a job, from a few steps; validation is not counted."""
    from sacm.training.hardware import Hardware, make_fabric
    from sacm.training.trainer import Training

    settings = job.settings
    data = load_data(settings.data, settings.task, settings.split)
    run = Run(Path())  # nothing is written before the first epoch ends
    raw = settings.model_copy(update={"strategy": "raw"})
    fabric = make_fabric(Hardware(), raw)
    training = Training(run.folder, raw, data, fabric)
    batches = training.train_batches
    batch = batches.windows.batch(np.arange(batches.batch_size))
    training.model.train()
    training.step(batch)
    started = time.perf_counter()
    for _ in range(_TIMED_STEPS):
        float(training.step(batch))
    seconds = (time.perf_counter() - started) / _TIMED_STEPS
    return seconds * training.passes * len(batches)
