"""Jobs on a Ray cluster: Ray places them and repeats those whose worker died.

A worker needs the package and the data; it trains in a folder of its own and sends the files of
the finished run back, and the driver writes them.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sacm.errors import ArgumentError
from sacm.experiments.engines.engine import Outcome, threads_for
from sacm.experiments.engines.local import describe_error
from sacm.experiments.jobs import Job
from sacm.files import write_atomically

_RETRIES = 3
Files = dict[str, bytes]


class RayEngine:
    """A cluster named by RAY_ADDRESS, or one on this machine for as long as it is needed."""

    def __init__(self, workers: int) -> None:
        try:
            import ray
        except ImportError:
            raise ArgumentError(
                "--engine ray needs Ray: install it with pip install 'sacm[ray]'."
            ) from None
        self.ray, self.workers = ray, workers

    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        """Keep so many jobs with the cluster."""
        ray = self.ray
        began_here = self._connect()
        waiting = iter(jobs)
        running: dict[Any, Job] = {}
        try:
            threads = share(self._processors(), self.workers)
            task = ray.remote(num_cpus=threads, max_retries=_RETRIES)(train_elsewhere)
            while True:
                while len(running) < self.workers and (job := next(waiting, None)) is not None:
                    begun = read_files(folder / job.run_id)
                    running[task.remote(job, threads, begun)] = job
                if not running:
                    return
                (ended,), _ = ray.wait(list(running), num_returns=1)
                yield self._outcome(running.pop(ended), ended, folder)
        finally:
            for left in running:
                ray.cancel(left, force=True)
            if began_here:
                ray.shutdown()

    def _connect(self) -> bool:
        """Whether a cluster was begun here, and so must end here."""
        if self.ray.is_initialized():
            return False
        address = os.environ.get("RAY_ADDRESS")
        self.ray.init(
            address=address,
            num_cpus=None if address else self.workers * threads_for(self.workers),
            include_dashboard=None if address else False,  # nobody looks, and it takes seconds
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        return True

    def _processors(self) -> list[int]:
        """CPUs for tasks of every node that has any."""
        alive = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return [cpus for resources in alive if (cpus := int(resources.get("CPU", 0)))]

    def _outcome(self, job: Job, ended: Any, folder: Path) -> Outcome:
        try:
            reason, files = self.ray.get(ended)
        except self.ray.exceptions.RayError as error:
            return without_result(job, error)
        write_files(files, folder / job.run_id)
        return Outcome(job, reason)


def share(processors: Sequence[int], workers: int) -> int:
    """CPUs of each task: as many as let so many workers run at once, and every node take part."""
    if not processors:
        raise ArgumentError(
            "no node of the Ray cluster has a CPU for tasks, so nothing would ever run: add a node "
            "to it, or unset RAY_ADDRESS."
        )
    for threads in range(min(processors), 1, -1):
        if sum(cpus // threads for cpus in processors) >= workers:
            return threads
    return 1


def without_result(job: Job, error: Any) -> Outcome:
    """A worker that died may do better next time; what the task itself raised would come again."""
    from ray import exceptions

    cause = error.cause if isinstance(error, exceptions.RayTaskError) else error
    if not isinstance(cause, exceptions.RayError):
        return Outcome(job, describe_error(cause))
    first = (str(cause).splitlines() or [type(cause).__name__])[0].rstrip(".")
    deaths = (
        exceptions.WorkerCrashedError,
        exceptions.NodeDiedError,
        exceptions.LocalRayletDiedError,
        exceptions.OutOfMemoryError,
        exceptions.ObjectLostError,  # with the node that had the files
    )
    if isinstance(cause, deaths):
        return Outcome(job, f"its worker died, also when repeated: {first}.", killed=True)
    return Outcome(job, f"Ray could not run it: {first}.")


def train_elsewhere(job: Job, threads: int, begun: Files) -> tuple[str | None, Files]:
    """On a worker: do the job in a folder that goes away; the run's files come back."""
    import torch

    from sacm.experiments.jobs import execute

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as place:
        write_files(begun, Path(place) / job.run_id)
        reason = None
        try:
            execute(job, Path(place))
        except Exception as error:  # whatever it is, it stops this job only
            reason = describe_error(error)
        return reason, read_files(Path(place) / job.run_id)


def read_files(run: Path) -> Files:
    """The files of a run folder."""
    return {path.name: path.read_bytes() for path in sorted(run.glob("*")) if path.is_file()}


def write_files(files: Files, run: Path) -> None:
    """Make a run folder hold just these files; last comes what says that it is finished."""
    for name in sorted(files, key=lambda name: name == "metrics.json"):
        write_atomically(run / name, partial(Path.write_bytes, data=files[name]))
    for name in read_files(run).keys() - files.keys():
        (run / name).unlink()
