"""Where the jobs of a grid run: processes of this machine, or a plug-in's engine.

A pool of `concurrent.futures` gives up when one of its processes is killed; here a dead process
costs its own job only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from sacm.errors import ArgumentError, SACMError
from sacm.registry import Registry
from sacm_lab.grid import Engine, Job, Outcome

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy torch's threads half alive
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


EngineFactory = Callable[[int], Engine]
ENGINES: Registry[EngineFactory] = Registry("engine")
"""Factories `(workers) -> Engine` by the name that `--engine` takes."""


def make_engine(name: str, *, workers: int) -> Engine:
    """Make an engine by name."""
    if workers < 1:
        raise ArgumentError(f"--workers must be at least 1, got {workers}.")
    return ENGINES.get(name)(workers)


def threads_for(workers: int) -> int:
    """Threads of each worker: together one a core, and no more than OMP_NUM_THREADS each."""
    share = max(1, (os.cpu_count() or 1) // workers)
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(asked)) if asked.isdigit() and int(asked) else share


@ENGINES.register("local")
class LocalEngine:
    """So many processes, each with its share of the cores."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        """Keep every worker busy; replace those that die."""
        waiting = iter(jobs)
        threads = threads_for(self.workers)
        busy: list[_Worker] = []
        idle: list[_Worker] = []
        try:
            while True:
                while len(busy) < self.workers and (job := next(waiting, None)) is not None:
                    worker = idle.pop() if idle else _Worker(folder, threads)
                    worker.start(job)
                    busy.append(worker)
                if not busy:
                    return
                ended = wait([place for worker in busy for place in worker.places()])
                for worker in [w for w in busy if any(p in ended for p in w.places())]:
                    outcome = worker.outcome()
                    busy.remove(worker)
                    if worker.alive:
                        idle.append(worker)
                    yield outcome  # last: whoever listens may stop here
        finally:
            for worker in [*busy, *idle]:
                worker.stop()


class _Worker:
    """A process, the line to it, and the job it has."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.line, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(
            target=worker_loop, args=(other, str(folder), threads), daemon=True
        )
        # Libraries read their number of threads from the environment, when they are loaded.
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
        self.process.start()
        other.close()
        self.job: Job | None = None

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    def places(self) -> list[Any]:
        """What becomes ready when the job has ended, or the process."""
        return [self.line, self.process.sentinel]

    def start(self, job: Job) -> None:
        self.job = job
        try:
            self.line.send(job)
        except OSError:
            self.process.join()  # died while idle; `outcome` will say so

    def outcome(self) -> Outcome:
        """What the process said of its job, or what its death says."""
        assert self.job is not None
        job, self.job = self.job, None
        try:
            reason: str | None = self.line.recv()
        except (EOFError, OSError):
            self.process.join()
            return Outcome(job, exit_reason(self.process.exitcode), killed=True)
        return Outcome(job, reason)

    def stop(self) -> None:
        self.line.close()
        self.process.terminate()
        self.process.join()


def exit_reason(code: int | None) -> str:
    """Why a process is gone, in words."""
    if code is None or code >= 0:
        return f"the worker process ended with code {code}."
    name = signal.Signals(-code).name
    hint = " (perhaps for want of memory)" if name == "SIGKILL" else ""
    return f"the worker process was killed by {name}{hint}."


def worker_loop(line: Connection, folder: str, threads: int) -> None:
    """The life of a worker process: do what comes down the line until it ends."""
    import torch

    from sacm_lab.grid import execute

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides when to stop
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    while True:
        try:
            job = line.recv()
        except EOFError:
            return
        try:
            execute(job, Path(folder))
            line.send(None)
        except Exception as error:  # whatever it is, it stops this job only
            line.send(describe_error(error))


def describe_error(error: Exception) -> str:
    """An error as one line; ours are sentences, others need their name."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, SACMError) else f"{type(error).__name__}: {text}"


def _die_with_parent() -> None:
    """A driver that was killed must not leave processes behind that write to its folder."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
