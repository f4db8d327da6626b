"""What an engine is: something that runs jobs and reports how each ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sacm.experiments.jobs import Job


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


def threads_for(workers: int) -> int:
    """Threads of each worker: together one a core, and no more than OMP_NUM_THREADS each."""
    share = max(1, (os.cpu_count() or 1) // workers)
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(asked)) if asked.isdigit() and int(asked) else share
