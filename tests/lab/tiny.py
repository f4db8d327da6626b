"""Jobs that run in part of a second, and an engine without processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sacm.files import read_json
from sacm_lab.engines import describe_error
from sacm_lab.grid import Engine, Job, Outcome, Tally, execute, run_jobs, status


class InProcess:
    """Jobs one after the other, here."""

    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        for job in jobs:
            try:
                execute(job, folder)
            except Exception as error:
                yield Outcome(job, describe_error(error))
            else:
                yield Outcome(job)


def ili(seed: int = 1, strategy: str = "raw", **changes: Any) -> Job:
    """A small iTransformer on ILI."""
    settings = {"task": "forecasting", "data": "ILI", "backbone": "iTransformer", "horizon": 24}
    settings |= {"seed": seed, "strategy": strategy, "size": "small", "epochs": 2, "stride": 40}
    checks = changes.pop("checks", ())
    targets = changes.pop("targets", ())
    return Job.make({**settings, **changes}, checks=checks, targets=targets)


def run_all(folder: Path, *jobs: Job, engine: Engine | None = None) -> Tally:
    """Run what is left of them."""
    left = [job for job in jobs if status(job, folder).state in ("missing", "interrupted")]
    return run_jobs(left, engine or InProcess(), folder)


def results(folder: Path) -> dict[str, tuple[Any, str]]:
    """Test results of every finished run, and a digest of its weights."""
    return {
        path.parent.name: (read_json(path)["test"], digest(path.parent / "best.safetensors"))
        for path in folder.glob("*/metrics.json")
    }


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
