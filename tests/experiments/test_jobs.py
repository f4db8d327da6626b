from __future__ import annotations

import multiprocessing
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from sacm.errors import SACMError
from sacm.experiments.jobs import Job, execute, record_job_failure, status
from sacm.files import read_json, write_json
from tests.experiments.tiny import groups_of, ili

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.fixture
def job(tmp_path: Path, stand_in: Path) -> Job:
    return groups_of(tmp_path, ili(strategies=("raw",)))[0].jobs[0]


def test_from_missing_to_done(job: Job, tmp_path: Path):
    assert status(job, tmp_path).state == "missing"
    record_job_failure(job, tmp_path, "the machine was switched off.", killed=True)
    assert status(job, tmp_path).state == "interrupted"
    record_job_failure(job, tmp_path, "the loss is nan.", killed=False)
    assert vars(status(job, tmp_path)) == {"state": "failed", "reason": "the loss is nan."}
    execute(job, tmp_path)
    assert vars(status(job, tmp_path)) == {"state": "done", "reason": None}
    assert not (tmp_path / job.run_id / "failure.json").exists()


def test_what_training_itself_says_of_a_failure_counts(job: Job, tmp_path: Path):
    write_json(tmp_path / job.run_id / "failure.json", {"reason": "too hot."})
    assert vars(status(job, tmp_path)) == {"state": "failed", "reason": "too hot."}


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"test": {"mse": 1.0}}'])
def test_a_damaged_result_is_a_failure_that_can_be_repeated(job: Job, tmp_path: Path, text: str):
    execute(job, tmp_path)
    path = tmp_path / job.run_id / "metrics.json"
    whole = read_json(path)["test"]
    path.write_text(text)
    found = status(job, tmp_path)
    assert found.state == "failed"
    assert "metrics.json is damaged" in str(found.reason)
    execute(job, tmp_path)
    assert status(job, tmp_path).state == "done"
    assert read_json(path)["test"] == whole


def test_a_damaged_word_of_a_failure_is_a_failure(job: Job, tmp_path: Path):
    write_json(tmp_path / job.run_id / "failure.json", [])
    found = status(job, tmp_path)
    assert (found.state, "failure.json is damaged" in str(found.reason)) == ("failed", True)


def test_other_data_than_the_drivers_are_refused(job: Job, tmp_path: Path):
    """As on a worker whose data folder is another one."""
    elsewhere = replace(job, run_id=job.settings.run_id("0123456789abcdef"))
    with pytest.raises(SACMError, match="ILI on this worker differs from the driver's"):
        execute(elsewhere, tmp_path)
    assert not list(tmp_path.glob("*/config.json"))


def test_a_run_with_a_target_is_done_when_the_target_is(tmp_path: Path):
    point = replace(ili(strategies=("raw",), data="ETTh1", horizon=96), target="ETTh2")
    (job,) = groups_of(tmp_path, replace(point, keys={**point.keys, "data": "ETTh1"}))[0].jobs
    assert job.files() == ["metrics.json", "on_ETTh2.json"]
    execute(replace(job, targets=()), tmp_path)
    before = (tmp_path / job.run_id / "metrics.json").stat()
    assert status(replace(job, targets=()), tmp_path).state == "done"
    assert status(job, tmp_path).state == "missing"
    execute(job, tmp_path)
    assert status(job, tmp_path).state == "done"
    after = (tmp_path / job.run_id / "metrics.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_target_with_other_channels(job: Job, tmp_path: Path):
    moved = replace(job, targets=("Exchange Rate",))
    with pytest.raises(SACMError, match="Exchange Rate has 8 channels, ILI has 7"):
        execute(moved, tmp_path)
    assert moved.files()[1] == "on_Exchange_Rate.json"


def test_a_run_that_another_process_has_is_waited_for(job: Job, tmp_path: Path):
    (tmp_path / ".locks").mkdir()
    with FileLock(tmp_path / ".locks" / f"{job.run_id}.lock"):
        waiting = threading.Thread(target=execute, args=(job, tmp_path))
        waiting.start()
        waiting.join(timeout=0.5)
        assert waiting.is_alive()
        assert not (tmp_path / job.run_id).exists()
    waiting.join()
    assert status(job, tmp_path).state == "done"


def count_results(job: Job, folder: Path, ready: Any, answers: Any) -> None:
    """Execute a job; say how often a result was put in place."""
    placed = []

    def on_event(event: str, details: tuple[Any, ...]) -> None:
        if event == "os.rename" and Path(details[1]).name in ("config.json", "metrics.json"):
            placed.append(Path(details[1]).name)

    sys.addaudithook(on_event)
    ready.wait()
    execute(job, folder)
    answers.put(placed)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_two_processes_asked_at_once_run_it_once(job: Job, tmp_path: Path):
    context = multiprocessing.get_context("fork")  # both have everything loaded: at once
    ready, answers = context.Barrier(2), context.Queue()
    both = [
        context.Process(target=count_results, args=(job, tmp_path, ready, answers))
        for _ in range(2)
    ]
    for process in both:
        process.start()
    placed = answers.get(timeout=60) + answers.get(timeout=60)
    for process in both:
        process.join()
    assert sorted(placed) == ["config.json", "metrics.json"]
