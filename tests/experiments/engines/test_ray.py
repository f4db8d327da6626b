"""The same files from a Ray cluster, also when it loses a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sacm.errors import ArgumentError
from sacm.experiments.engines import Outcome, make_engine
from sacm.experiments.engines.ray import (
    RayEngine,
    read_files,
    share,
    without_result,
    write_files,
)
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import run_plan
from sacm.files import read_json
from tests.experiments.tiny import groups_of, ili, results, run_all

ray = pytest.importorskip("ray")

PLACES = (ili(1), ili(2, strategies=("raw",)))
LONG = ili(3, strategies=("sacm",), epochs=150, patience=150)
WILD = ili(4, strategies=("raw",), learning_rate=1e30, stride=5)
WORKERS = max(2, os.cpu_count() or 1)  # one thread each, as here

pytestmark = [
    pytest.mark.ray,
    # Ray's own: a forked raylet, sockets it closes late, an announcement about accelerators.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*accelerator visible devices:FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster(stand_in: Path) -> Iterator[None]:
    """A cluster of this machine; its workers see the data folder of this process."""
    engine = RayEngine(WORKERS)
    assert engine._connect()
    yield
    ray.shutdown()


def busy_workers() -> list[psutil.Process]:
    """Ray names a worker process after the function it runs."""
    below = psutil.Process().children(recursive=True)
    found = []
    for process in below:
        try:
            if "ray::train_elsewhere" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_same_files_as_in_one_process(cluster, tmp_path: Path):
    far, near = tmp_path / "far", tmp_path / "near"
    groups = groups_of(far, *PLACES, WILD)
    engine = make_engine("ray", workers=WORKERS)
    tally = run_plan(make_plan(groups, far), engine, far, workers=WORKERS)
    assert (tally.done, len(tally.failed), tally.left) == (3, 1, 0)
    run_all(near, *PLACES)
    assert results(far) == results(near)
    for name in results(near):
        assert sorted(read_files(far / name)) == sorted(read_files(near / name))
        assert read_json(far / name / "environment.json")["threads"] == 1
    record = read_json(far / groups[2].jobs[0].run_id / "failure.json")
    assert record["reason"].startswith("the loss is nan at epoch 1, step 2")
    assert record["killed"] is False
    assert ray.is_initialized()  # a cluster that was there stays


@pytest.mark.nightly
def test_a_lost_worker_is_replaced(cluster, tmp_path: Path):
    far, near = tmp_path / "far", tmp_path / "near"
    killed = []

    def kill() -> None:
        deadline = time.monotonic() + 300  # a busy machine takes its time to start a worker
        while not (found := busy_workers()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)
        if found[0] in busy_workers():  # still at it
            found[0].send_signal(signal.SIGKILL)
            killed.append(found[0].pid)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    plan = make_plan(groups_of(far, LONG), far)
    tally = run_plan(plan, RayEngine(WORKERS), far, workers=WORKERS)
    killer.join()
    assert len(killed) == 1
    assert (tally.done, tally.failed) == (1, ())
    run_all(near, LONG)
    assert results(far) == results(near)


def test_tasks_ask_for_what_the_nodes_of_the_cluster_have():
    assert share([8], 2) == 4
    assert share([64, 4], 2) == 4  # however many the largest has
    assert share([8, 8, 8], 4) == 4  # with 6 each node would run one
    assert share([2, 2], 100) == 1
    with pytest.raises(ArgumentError, match="no node of the Ray cluster has a CPU"):
        share([], 2)


def test_a_dead_worker_is_told_from_an_error_of_the_task(tmp_path: Path, stand_in: Path):
    (job,) = groups_of(tmp_path, PLACES[1])[0].jobs
    for death in (
        ray.exceptions.WorkerCrashedError(),
        ray.exceptions.NodeDiedError("the node is gone.\nmore"),
        ray.exceptions.OutOfMemoryError("too much."),
    ):
        outcome = without_result(job, death)
        assert outcome.killed
        assert str(outcome.reason).startswith("its worker died, also when repeated: ")
        assert "\n" not in str(outcome.reason)
    raised = ray.exceptions.RayTaskError("train", "traceback", KeyError("width"))
    assert without_result(job, raised) == Outcome(job, "KeyError: 'width'")


def test_what_a_task_raises_is_its_own_failure(cluster, tmp_path: Path):
    class Torn:
        """A job that cannot be read on the worker."""

        run_id = "torn"

        def __reduce__(self) -> Any:
            return absent_package, ()

    jobs: Any = [Torn()]
    (outcome,) = RayEngine(WORKERS).run(jobs, tmp_path)
    assert not outcome.killed
    assert outcome.reason == (
        "Ray could not run it: System error: No module named 'sacm_of_tomorrow'."
    )


def absent_package() -> None:
    raise ModuleNotFoundError("No module named 'sacm_of_tomorrow'")


def test_a_run_that_was_begun_here_is_continued_there(tmp_path: Path):
    """What is sent to a worker is the whole run folder; what comes back replaces it."""
    begun, copy = tmp_path / "begun", tmp_path / "copy"
    write_files({"last.pt": b"1", "failure.json": b"2", "metrics.json": b"3"}, begun)
    assert read_files(begun) == {"last.pt": b"1", "failure.json": b"2", "metrics.json": b"3"}
    write_files(read_files(begun), copy)
    write_files({"metrics.json": b"4"}, copy)
    assert read_files(copy) == {"metrics.json": b"4"}
    assert read_files(tmp_path / "nothing") == {}
