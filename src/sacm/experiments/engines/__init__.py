"""Where the jobs of a grid run: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sacm.errors import ArgumentError
from sacm.experiments.jobs import Job

ENGINES = ("local", "ray")


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


def make_engine(name: str, *, workers: int) -> Engine:
    """An engine by name."""
    if workers < 1:
        raise ArgumentError(f"--workers must be at least 1, got {workers}.")
    if name == "local":
        from sacm.experiments.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from sacm.experiments.engines.ray import RayEngine

        return RayEngine(workers)
    raise ArgumentError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}.")


def threads_for(workers: int) -> int:
    """Threads of each worker, so that together they have one a core."""
    import os

    return max(1, (os.cpu_count() or 1) // workers)
