"""An eventful grid in real processes: good runs, bad ones, and a worker that is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from sacm.experiments.engines import threads_for
from sacm.experiments.engines.local import LocalEngine
from sacm.experiments.grid import JobGroup
from sacm.experiments.jobs import Job
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import Tally, run_plan
from sacm.files import read_json
from tests.experiments.tiny import groups_of, ili, results, run_all

# As many as there are cores have one thread each, so results are those of one thread here.
WORKERS = max(2, os.cpu_count() or 1)
GOOD = (ili(1), ili(2), ili(3))
LONG = ili(4, strategies=("raw",), epochs=100, patience=100)
WILD = ili(5, strategies=("raw",), learning_rate=1e30, stride=5)
VAST = ili(6, strategies=("raw",), overrides={"width": 2**22})
ALL = (LONG, WILD, VAST, *GOOD)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stand_in")]


@dataclass(frozen=True)
class Eventful:
    folder: Path
    groups: list[JobGroup]
    tally: Tally
    workers: set[int]

    def job(self, place: object) -> Job:
        return self.groups[ALL.index(place)].jobs[0]


def holder(lock: Path) -> psutil.Process | None:
    """The child process that has a lock file open."""
    for child in psutil.Process().children(recursive=True):
        try:
            if any(Path(file.path) == lock for file in child.open_files()):
                return child
        except psutil.Error:
            continue
    return None


def kill_while_running(job: Job, folder: Path) -> None:
    """Wait until a run has some epochs behind it, then kill its process."""
    history = folder / job.run_id / "history.csv"
    deadline = time.monotonic() + 120
    while not history.exists() or len(history.read_text().splitlines()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process = holder(folder / ".locks" / f"{job.run_id}.lock")
    assert process is not None
    process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def eventful(stand_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Eventful:
    folder = tmp_path_factory.mktemp("eventful")
    groups = groups_of(folder, *ALL)
    jobs = [job for group in groups for job in group.jobs]
    killer = threading.Thread(target=kill_while_running, args=(jobs[0], folder), daemon=True)
    killer.start()
    workers: set[int] = set()

    class Watched(LocalEngine):
        def run(self, jobs, folder):
            for outcome in super().run(jobs, folder):
                workers.update(child.pid for child in psutil.Process().children())
                yield outcome

    tally = run_plan(make_plan(groups, folder), Watched(WORKERS), folder, workers=WORKERS)
    killer.join()
    return Eventful(folder, groups, tally, workers)


def test_the_other_runs_are_finished_and_as_in_one_process(eventful: Eventful, tmp_path: Path):
    assert (eventful.tally.done, len(eventful.tally.failed), eventful.tally.left) == (6, 3, 0)
    run_all(tmp_path, *GOOD)
    assert results(eventful.folder) == results(tmp_path)
    assert len(results(tmp_path)) == 6


def test_workers_have_their_share_of_the_threads(eventful: Eventful):
    for path in eventful.folder.glob("*/environment.json"):
        assert read_json(path)["threads"] == threads_for(WORKERS) == 1


def test_a_killed_worker_is_written_down_and_continued(eventful: Eventful, tmp_path: Path):
    job = eventful.job(LONG)
    record = read_json(eventful.folder / job.run_id / "failure.json")
    assert record["killed"] is True
    assert "SIGKILL" in record["reason"]
    before = len((eventful.folder / job.run_id / "history.csv").read_text().splitlines()) - 1
    assert 3 <= before < 100
    tally = run_all(eventful.folder, LONG)
    assert (tally.done, tally.failed) == (1, ())
    run_all(tmp_path, LONG)
    assert results(eventful.folder)[job.run_id] == results(tmp_path)[job.run_id]
    history = [
        (tmp_path / job.run_id / "history.csv"),
        eventful.folder / job.run_id / "history.csv",
    ]
    alone, continued = (read_losses(path) for path in history)
    assert alone == continued
    assert not (eventful.folder / job.run_id / "failure.json").exists()


def read_losses(path: Path) -> list[list[str]]:
    """Epoch, training loss and validation of each epoch."""
    return [line.split(",")[:3] for line in path.read_text().splitlines()]


def test_a_loss_that_is_not_a_number_is_the_runs_own_failure(eventful: Eventful):
    record = read_json(eventful.folder / eventful.job(WILD).run_id / "failure.json")
    assert record == {
        "reason": "the loss is nan at epoch 1, step 2: lower the learning rate or look for "
        "extreme values in the batch, which the run folder keeps as failed_batch.pt.",
        "killed": False,
    }


def test_want_of_memory_is_the_runs_own_failure(eventful: Eventful):
    record = read_json(eventful.folder / eventful.job(VAST).run_id / "failure.json")
    assert record["killed"] is False
    assert "memory" in record["reason"]


def test_no_worker_is_left(eventful: Eventful):
    assert len(eventful.workers) > WORKERS - 1
    assert not [pid for pid in eventful.workers if is_worker(pid)]


def is_worker(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(
            process.cmdline()
        )
    except psutil.Error:
        return False


class Telling:
    """A job that fails by saying what its process is like."""

    @property
    def run_id(self) -> str:
        raise MemoryError(f"{os.environ['OMP_NUM_THREADS']} and {torch.get_num_threads()} threads")


def test_one_worker_has_every_thread_and_survives_any_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = os.environ.get("OMP_NUM_THREADS")
    cores = os.cpu_count()
    jobs: Any = [Telling(), Telling(), Telling()]
    running = LocalEngine(1).run(jobs, tmp_path)
    for _ in range(2):
        assert next(running).reason == f"MemoryError: {cores} and {cores} threads"
        (worker,) = [child for child in psutil.Process().children() if is_worker(child.pid)]
    assert os.environ.get("OMP_NUM_THREADS") == before
    running.close()  # as when whoever listens is interrupted
    assert not is_worker(worker.pid)
