"""Jobs: how far they are, what is left behind, and real processes that are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from sacm.errors import ArgumentError, SACMError
from sacm.files import read_json, write_json
from sacm.registry import temporary_entries
from sacm.training.run import Run
from sacm_lab import CHECKS, engines
from sacm_lab.engines import LocalEngine, make_engine, threads_for
from sacm_lab.grid import (
    Job,
    Tally,
    execute,
    merge_jobs,
    run_jobs,
    status,
    time_epoch,
    transfer,
)
from tests.lab.tiny import InProcess, ili, results, run_all

pytestmark = pytest.mark.usefixtures("stand_in")


def test_a_job_that_was_done_is_not_done_again(tmp_path: Path) -> None:
    job = ili()
    assert status(job, tmp_path).state == "missing"
    assert run_all(tmp_path, job) == Tally(1, (), 0)
    assert status(job, tmp_path).state == "done"
    assert run_all(tmp_path, job) == Tally(0, (), 0)
    assert Run(tmp_path / job.run_id).finished


def test_a_failure_is_written_down_and_stops_nothing(tmp_path: Path) -> None:
    wild = ili(learning_rate=1e30, stride=5)
    tally = run_all(tmp_path, wild, ili())
    assert (tally.done, tally.left) == (1, 0)
    assert [outcome.job for outcome in tally.failed] == [wild]
    found = status(wild, tmp_path)
    assert found.state == "failed"
    assert found.reason is not None
    assert found.reason.startswith("the loss is nan at epoch 1")
    assert run_all(tmp_path, wild).failed == ()  # it would fail again, so it is left alone


@pytest.mark.parametrize("text", ["{", "[]", '{"test": {}}'])
def test_a_damaged_result_is_a_failure_and_can_be_made_anew(tmp_path: Path, text: str) -> None:
    job = ili()
    execute(job, tmp_path)
    path = tmp_path / job.run_id / "metrics.json"
    before = read_json(path)["test"]
    path.write_text(text)
    assert status(job, tmp_path).state == "failed"
    assert "damaged" in str(status(job, tmp_path).reason)
    execute(job, tmp_path)
    assert read_json(path)["test"] == before


def test_a_damaged_failure_is_a_failure(tmp_path: Path) -> None:
    job = ili()
    write_json(tmp_path / job.run_id / "failure.json", ["nothing"])
    assert status(job, tmp_path).state == "failed"


def test_a_check_and_a_transfer_stand_in_the_run_folder(tmp_path: Path) -> None:
    with temporary_entries():
        CHECKS.register("count")(lambda run, data: {"test": {"rows": len(data.values)}})
        job = ili(checks=("count",))
        execute(job, tmp_path)
    assert read_json(tmp_path / job.run_id / "check_count.json") == {"test": {"rows": 966}}
    run = Run(tmp_path / job.run_id)
    assert transfer(run, "ETTh1")["test"]["mse"] > 0  # seven channels too
    with pytest.raises(SACMError, match="Exchange Rate has 8 channels, ILI has 7"):
        transfer(run, "Exchange Rate")


def test_the_same_run_of_two_jobs_is_one_with_the_wishes_of_both() -> None:
    merged = merge_jobs([ili(checks=("a",)), ili(2), ili(checks=("b",), targets=("ETTh1",))])
    assert len(merged) == 2
    assert (merged[0].checks, merged[0].targets) == (("a", "b"), ("ETTh1",))


def test_no_run_is_begun_after_the_budget(tmp_path: Path) -> None:
    tally = run_jobs([ili(1), ili(2)], InProcess(), tmp_path, budget=0.0)
    assert tally == Tally(0, (), 2)
    seen: list[Any] = []
    tally = run_jobs([ili(1), ili(2)], InProcess(), tmp_path, budget=600, on_outcome=seen.append)
    assert (tally.done, len(seen)) == (2, 2)


def test_a_few_steps_tell_the_time_of_an_epoch() -> None:
    few, many = time_epoch(ili(stride=40)), time_epoch(ili(stride=1))
    assert 0 < few < many


def test_other_data_under_the_same_name_are_refused(tmp_path: Path) -> None:
    job = ili()
    with pytest.raises(SACMError, match="ILI on this worker differs from the driver's"):
        execute(Job(job.settings, "another"), tmp_path)


def test_engines_by_name() -> None:
    assert isinstance(make_engine("LOCAL", workers=2), LocalEngine)
    with pytest.raises(ArgumentError, match="there is no engine 'slurm'"):
        make_engine("slurm", workers=1)
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        make_engine("local", workers=0)


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.cpu_count() or 1
    assert (threads_for(1), threads_for(cores), threads_for(cores + 5)) == (cores, 1, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_for(1) == 1


# Real processes: good runs, a bad one, and a worker that is killed.

WORKERS = max(2, os.cpu_count() or 1)


def kill_while_running(job: Job, folder: Path) -> None:
    """Wait until a run has some epochs behind it, then kill the process that has its lock."""
    history, lock = folder / job.run_id / "history.csv", folder / ".locks" / f"{job.run_id}.lock"
    deadline = time.monotonic() + 240
    while not history.exists() or len(history.read_text().splitlines()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(Path(file.path) == lock for file in child.open_files()):
                child.send_signal(signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_worker_costs_its_own_run_which_continues(tmp_path: Path) -> None:
    long = ili(4, epochs=100, patience=100)
    good = [ili(1), ili(2, "sacm")]
    killer = threading.Thread(target=kill_while_running, args=(long, tmp_path), daemon=True)
    killer.start()
    tally = run_all(tmp_path, long, *good, engine=LocalEngine(WORKERS))
    killer.join()
    assert (tally.done, len(tally.failed)) == (2, 1)
    found = status(long, tmp_path)
    assert found.state == "interrupted"
    assert "SIGKILL" in str(found.reason)
    for path in tmp_path.glob("*/environment.json"):
        assert read_json(path)["threads"] == threads_for(WORKERS)
    assert run_all(tmp_path, long).done == 1
    assert not (tmp_path / long.run_id / "failure.json").exists()
    alone = tmp_path / "alone"
    run_all(alone, long, *good)
    assert results(tmp_path) == results(alone)
    children = [child.cmdline() for child in psutil.Process().children()]
    assert not any("spawn_main" in " ".join(line) for line in children)


# The driver is killed too. It is a fork of this process, and so are its workers: so many starts of
# fresh interpreters would take minutes to import what is loaded here already.

FORK = multiprocessing.get_context("fork")
KILLS = int(os.environ.get("SACM_TEST_KILLS", "3"))


def drive(folder: Path, jobs: list[Job]) -> None:
    """The driver: run what is left of the grid."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if tests run in background
    engines._SPAWN = FORK  # type: ignore[assignment]
    run_all(folder, *jobs, engine=LocalEngine(2))


def start(folder: Path, jobs: list[Job]) -> Any:
    process = FORK.Process(target=drive, args=(folder, jobs))
    process.start()
    return process


def count_epochs(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) - 1 for path in folder.glob("*/history.csv"))


def wait_for_epochs(driver: Any, folder: Path, more: int) -> list[psutil.Process]:
    """The workers, once so many epochs have been added."""
    enough, deadline = count_epochs(folder) + more, time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(psutil.Error):
            workers = psutil.Process(driver.pid).children()
            if count_epochs(folder) >= enough and workers:
                return workers
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_kills_change_nothing(tmp_path: Path) -> None:
    calm, storm = tmp_path / "calm", tmp_path / "storm"
    strategies = ("raw", "sacm")
    jobs = [ili(s, name, epochs=25, patience=25) for s in (1, 2) for name in strategies]
    run_all(calm, *jobs)
    chance, driver = random.Random(12), start(storm, jobs)
    victims = []
    for number in range(KILLS):
        workers = wait_for_epochs(driver, storm, chance.randrange(8))
        if number % 2:
            chance.choice(workers).kill()
            victims.append("worker")
        else:
            os.kill(driver.pid, signal.SIGKILL)
            driver.join()
            assert not psutil.wait_procs(workers, timeout=10)[1]  # they go with it
            driver = start(storm, jobs)
            victims.append("driver")
    driver.join()
    for _ in range(3):  # what was killed is left for the next time
        start(storm, jobs).join()
    assert {"driver", "worker"} <= set(victims)
    assert results(storm) == results(calm)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_an_interrupted_driver_leaves_no_process(tmp_path: Path) -> None:
    driver = start(tmp_path, [ili(s, epochs=10**6, patience=10**6) for s in (1, 2)])
    workers = wait_for_epochs(driver, tmp_path, 3)
    os.kill(driver.pid, signal.SIGINT)
    driver.join()
    assert not psutil.wait_procs(workers, timeout=10)[1]
