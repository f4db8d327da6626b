from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from sacm.experiments.engines import Outcome, threads_for
from sacm.experiments.jobs import Job
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import run_plan
from sacm.files import read_json, write_json
from tests.experiments.tiny import InProcess, groups_of, ili

pytestmark = pytest.mark.usefixtures("stand_in")
WILD = {"learning_rate": 1e30, "stride": 5}


def test_a_run_that_fails_is_written_down_and_stops_nothing(tmp_path: Path):
    groups = groups_of(tmp_path, ili(1, strategies=("raw",), **WILD), ili(2, strategies=("raw",)))
    heard: list[Outcome] = []
    plan = make_plan(groups, tmp_path)
    tally = run_plan(plan, InProcess(), tmp_path, workers=1, on_outcome=heard.append)
    assert (tally.done, len(tally.failed), tally.left) == (1, 1, 0)
    assert {outcome.job.run_id for outcome in heard} == {
        groups[0].jobs[0].run_id,
        groups[1].jobs[0].run_id,
    }
    failed = groups[0].jobs[0]
    record = read_json(tmp_path / failed.run_id / "failure.json")
    assert record["killed"] is False
    assert record["reason"].startswith(
        "the loss is nan at epoch 1, step 2: lower the learning rate"
    )
    states = pd.read_parquet(tmp_path / "runs.parquet").set_index("run")["state"]
    assert states[failed.run_id] == "failed"
    assert states[groups[1].jobs[0].run_id] == "done"


def test_a_failed_run_is_repeated_only_on_request(tmp_path: Path):
    groups = groups_of(tmp_path, ili(1, strategies=("raw",), **WILD))
    (job,) = groups[0].jobs
    run_plan(make_plan(groups, tmp_path), InProcess(), tmp_path, workers=1)
    first = (tmp_path / job.run_id / "failure.json").stat().st_mtime_ns
    again = run_plan(make_plan(groups, tmp_path), InProcess(), tmp_path, workers=1)
    assert (again.done, again.failed, again.left) == (0, (), 0)
    assert (tmp_path / job.run_id / "failure.json").stat().st_mtime_ns == first
    asked = make_plan(groups, tmp_path, retry_failed=True)
    assert len(run_plan(asked, InProcess(), tmp_path, workers=1).failed) == 1
    assert (tmp_path / job.run_id / "failure.json").stat().st_mtime_ns > first


class Forbidden:
    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        raise AssertionError("there is nothing to run")


def test_no_engine_is_started_for_nothing(tmp_path: Path):
    groups = groups_of(tmp_path, ili(1, strategies=("raw",)))
    run_plan(make_plan(groups, tmp_path), InProcess(), tmp_path, workers=1)
    (tmp_path / "runs.parquet").unlink()
    tally = run_plan(make_plan(groups, tmp_path), Forbidden(), tmp_path, workers=1)
    assert (tally.done, tally.failed, tally.left, tally.shortest) == (0, (), 0, 0)
    assert (tmp_path / "runs.parquet").exists()


def test_what_the_budget_does_not_admit_is_counted(tmp_path: Path):
    short, long = groups_of(tmp_path, ili(1), ili(2, epochs=3))
    kind = "forecasting|ILI|iTransformer|small|stride 40|batch 32"
    threads = threads_for(1)
    kept = {f"{kind}|epochs {n}|threads {threads}": 10.0**n for n in (2, 3)}
    write_json(tmp_path / "costs.json", kept)
    plan = make_plan([long, short], tmp_path)
    tally = run_plan(plan, InProcess(), tmp_path, workers=1, budget=500.0)
    assert (tally.done, tally.left, tally.shortest) == (2, 2, 2 * 3 * 1000.0)
    again = run_plan(make_plan([long], tmp_path), InProcess(), tmp_path, workers=2, budget=500.0)
    assert (again.left, again.shortest) == (2, 3 * 1000.0)  # side by side
