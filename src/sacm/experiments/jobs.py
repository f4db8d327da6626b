"""One run of a grid: what it is, what is there of it, and how it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from sacm.data.fingerprint import fingerprint
from sacm.data.load import resolve
from sacm.errors import SACMError
from sacm.experiments.checks import CHECKS
from sacm.experiments.guess_cost import Extent
from sacm.experiments.run_files import RESULTS, read_failure, read_record_with, write_failure
from sacm.files import write_json
from sacm.settings import ResolvedSettings
from sacm.tasks import get_task
from sacm.training.run import Run
from sacm.types import TaskName

State = Literal["done", "failed", "interrupted", "missing"]


@dataclass(frozen=True)
class Job:
    """A run by its complete settings.

    targets: data sets to test the finished model on; checks: names of what else it is tested by.
    """

    settings: ResolvedSettings
    run_id: str
    targets: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """What is there when it is done."""
        transfers = [transfer_file(target) for target in self.targets]
        return ["metrics.json", *transfers, *map(check_file, self.checks)]

    def load(self) -> Any:
        """The data it is trained on."""
        return load_data(self.settings.data, self.settings.task, self.settings.split)

    def watch(self) -> Callable[[int, float], None] | None:
        """What hears of every epoch and its validation, and may end the training; None: nothing."""
        return None


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
        reason = next(filter(None, (damage(run / name) for name in job.files())), None)
        return Status("done") if reason is None else Status("failed", reason)
    failure = read_failure(run)
    return Status("missing") if failure is None else Status(*failure)


def damage(path: Path) -> str | None:
    """Why a file of results cannot be used; None if it can."""
    try:
        read_record_with(path, "test", *(RESULTS if path.name == "metrics.json" else ()))
    except SACMError as error:
        return str(error)
    return None


def record_job_failure(job: Job, folder: Path, reason: str, *, killed: bool) -> None:
    """Leave word in the run folder of why there is no result."""
    write_failure(folder / job.run_id, reason, killed=killed)


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
        data = job.load()
        if job.settings.run_id(fingerprint(data)) != job.run_id:
            raise SACMError(
                f"{job.settings.data} on this worker differs from the driver's: give every worker "
                "the same files."
            )
        for path in (folder / job.run_id / name for name in job.files()):
            if path.exists() and damage(path) is not None:
                path.unlink()
        hardware = Hardware(show_progress=False)
        run = train(job.settings, folder=folder, hardware=hardware, data=data, on_epoch=job.watch())
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
            f"{run.shape.channels}: "
            "a model cannot move between them."
        )
    windows = get_task(run.settings.task).windows(run.settings, other)
    result = run.task.evaluate(run.load_model(), windows, other, run.settings, run.strategy)
    return {"test": result.row, "evaluated_windows": result.evaluated}


def transfer_file(target: str) -> str:
    """Where the result on a target stands in the run folder."""
    return f"on_{target.replace(' ', '_')}.json"


def check_file(check: str) -> str:
    """Where the result of a check stands in the run folder."""
    return f"check_{check}.json"


@lru_cache(maxsize=4)
def load_data(name: str, task: TaskName, split: tuple[float, ...] | None = None) -> Any:
    """A data set, in its own split or in other shares, kept for the next job of the process."""
    data = resolve(name, task=task, reading={} if split is None else {"split": split})
    _EXTENTS[name, task, split] = Extent.of(data)
    return data


_EXTENTS: dict[tuple[str, TaskName, tuple[float, ...] | None], Extent] = {}


def load_extent(name: str, task: TaskName, split: tuple[float, ...] | None = None) -> Extent:
    """How large a data set is; one that was loaded before is not loaded again for it."""
    if (name, task, split) not in _EXTENTS:
        load_data(name, task, split)
    return _EXTENTS[name, task, split]
