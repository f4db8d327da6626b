from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sacm.experiments.engines import threads_for
from sacm.experiments.grid import Grid, JobGroup
from sacm.experiments.grid_points import Point
from sacm.experiments.jobs import Job, Status, record_job_failure
from sacm.experiments.named.experiment import points
from sacm.experiments.plan import Plan, PlannedGroup, make_plan
from sacm.files import write_json
from sacm.tasks import make_settings
from sacm_lab.paper.experiments.catalogue import find
from tests.experiments.tiny import InProcess, groups_of, ili, run_all, run_plan, tiny

SETTINGS = make_settings(task="forecasting", data="ILI")


def planned(name: str, *costs: float, targets: tuple[str, ...] = ()) -> PlannedGroup:
    """A group with so many jobs left, which take so many seconds."""
    jobs = tuple(Job(SETTINGS, f"{name}{i}", targets) for i in range(len(costs)))
    missing = (Status("missing"),) * len(jobs)
    return PlannedGroup(JobGroup(Point({}, {}, ()), "small", jobs), missing, jobs, costs)


def admitted(plan: Plan, budget: float | None, *, workers: int = 1, lost: float = 0.0) -> list[str]:
    """Names of the jobs that a budget admits when each takes its time, and `lost` seconds more."""
    costs = {
        job.run_id: cost
        for one in plan.groups
        for job, cost in zip(one.todo, one.costs, strict=True)
    }
    now = [100.0]
    names = []
    for job in plan.admitted(budget, workers=workers, clock=lambda: now[0]):
        names.append(job.run_id)
        now[0] += costs[job.run_id] / workers + lost
    return names


def test_without_a_budget_everything_is_run():
    plan = Plan((planned("a", 1, 2), planned("b", 30)))
    assert admitted(plan, None) == ["a0", "a1", "b0"]
    assert (plan.jobs_left, plan.seconds_left) == (3, 33)


def test_a_group_is_begun_whole_or_not_at_all():
    plan = Plan((planned("a", 5, 5), planned("b", 6, 6), planned("c", 8, 8)))
    assert admitted(plan, 21.9) == ["a0", "a1"]
    assert admitted(plan, 22.0) == ["a0", "a1", "b0", "b1"]
    # Begun in time it is finished, whatever it takes.
    assert admitted(plan, 10.0, lost=50.0) == ["a0", "a1"]


def test_a_group_that_is_too_long_is_passed_over():
    plan = Plan((planned("long", 100, 100), planned("short", 3)))
    assert admitted(plan, 50.0) == ["short0"]
    assert admitted(plan, 2.0) == []


def test_jobs_of_a_group_run_side_by_side():
    plan = Plan((planned("pair", 10, 10), planned("one", 10)))
    assert admitted(plan, 10.0, workers=2) == ["pair0", "pair1"]
    assert admitted(plan, 9.9, workers=2) == []
    # One job does not get shorter by a second worker.
    assert admitted(Plan((planned("one", 10),)), 6.0, workers=2) == []


def test_a_shared_run_counts_once_and_gets_every_target():
    plan = Plan((planned("a", 4, 5, targets=("ETTh2",)), planned("a", 4, 5, targets=("ETTm2",))))
    assert (plan.jobs_left, plan.seconds_left) == (2, 9)
    jobs = list(plan.admitted(None, workers=1))
    assert [(job.run_id, job.targets) for job in jobs] == [
        ("a0", ("ETTh2", "ETTm2")),
        ("a1", ("ETTh2", "ETTm2")),
    ]


@pytest.fixture
def folder(stand_in: Path, tmp_path: Path) -> Path:
    return tmp_path


def test_the_cheapest_comes_first(folder: Path):
    slow, fast = groups_of(folder, ili(1, epochs=100), ili(2))
    kind, threads = "forecasting|ILI|iTransformer|small|stride 40|batch 32", threads_for(3)
    kept = {f"{kind}|epochs {n}|threads {threads}": 3.0 for n in (2, 100)}
    write_json(folder / "costs.json", kept)
    plan = make_plan([slow, fast], folder, workers=3)
    assert [one.group for one in plan.groups] == [fast, slow]
    assert [one.seconds for one in plan.groups] == [2 * 2 * 3.0, 2 * 25 * 3.0]


def test_what_is_finished_is_not_planned(folder: Path):
    run_all(folder, ili(1, strategies=("raw",)))
    heard = []
    groups = groups_of(folder, ili(1), ili(2))
    plan = make_plan(groups, folder, on_group=heard.append)
    assert heard == groups
    begun, whole = plan.groups
    assert [status.state for status in begun.statuses] == ["done", "missing"]
    assert [job.settings.strategy for job in begun.todo] == ["sacm"]
    assert len(whole.todo) == 2
    assert plan.jobs_left == 3


def test_a_group_with_a_failed_run_is_run_whole_on_request_or_left_alone(folder: Path):
    groups = groups_of(folder, ili(1, strategies=("raw", "sacm", "fixed(p=0.1)")))
    failed, killed, missing = groups[0].jobs
    record_job_failure(failed, folder, "the loss is nan.", killed=False)
    record_job_failure(killed, folder, "killed by SIGKILL.", killed=True)
    (one,) = make_plan(groups, folder).groups
    assert (one.todo, one.seconds) == ((), 0)
    assert [found.state for found in one.statuses] == ["failed"] * 3
    assert one.statuses[0].reason == "the loss is nan."
    assert "--retry-failed" in str(one.statuses[2].reason)
    (one,) = make_plan(groups, folder, retry_failed=True).groups
    assert one.todo == (failed, killed, missing)


def test_a_killed_run_is_tried_again(folder: Path):
    groups = groups_of(folder, ili(1))
    record_job_failure(groups[0].jobs[0], folder, "killed by SIGKILL.", killed=True)
    (one,) = make_plan(groups, folder).groups
    assert one.todo == groups[0].jobs


def test_absent_data_are_left_out(folder: Path):
    place = ili()
    absent = Point(
        {**place.keys, "data": "Weather"}, {**place.settings, "data": "Weather"}, ("raw",)
    )
    plan = make_plan(groups_of(folder, absent, place), folder)
    assert [one.group.absent for one in plan.groups] == ["Weather", None]
    assert plan.jobs_left == 2
    assert len(plan.todo) == 1


def test_sources_are_trained_once_for_all_their_targets(folder: Path):
    chosen = tiny("zero_shot", datasets=("ETTh1", "ETTh2"))
    groups = Grid(chosen, folder).groups(points(find("zero_shot"), chosen))
    plan = make_plan(groups, folder)
    assert (len(plan.groups), plan.jobs_left) == (4, 4)
    assert plan.seconds_left == pytest.approx(sum(one.seconds for one in plan.groups) / 2)
    jobs = {job.run_id: job.targets for job in plan.admitted(None, workers=1)}
    assert sorted(jobs.values()) == [("ETTh1", "ETTm2")] * 2 + [("ETTh2", "ETTm2")] * 2


def test_a_budget_of_nothing_begins_nothing(folder: Path):
    plan = make_plan(groups_of(folder, ili()), folder)
    tally = run_plan(plan, InProcess(), folder, workers=1, budget=0.0)
    assert (tally.done, tally.failed, tally.left) == (0, (), 2)
    assert tally.shortest == plan.seconds_left > 0
    assert not list(folder.glob("*/metrics.json"))
    assert replace(plan, groups=()).seconds_left == 0
