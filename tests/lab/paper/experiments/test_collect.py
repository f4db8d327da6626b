from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sacm.experiments.grid_points import Point
from sacm.experiments.jobs import record_job_failure
from sacm.experiments.named.collect import collect
from sacm.experiments.named.experiment import BEST_FIXED
from sacm.experiments.named.findings import RunFinding
from sacm.experiments.named.pairs import run_of
from sacm.experiments.named.tabulate import tabulate
from sacm.files import read_json, write_json
from sacm_lab.paper.experiments.catalogue import find
from tests.experiments.tiny import groups_of, ili, run_all

pytestmark = pytest.mark.usefixtures("stand_in")
RATES = ("raw", "fixed(p=0.0)", "fixed(p=0.1)", "fixed(p=0.2)")
PAIR = replace(find("real_forecasting"), datasets=("ILI",), backbones=("iTransformer",))
SWEEP = replace(find("fixed_sweep"), strategies=RATES, shown=(*RATES, BEST_FIXED), metrics=("mse",))


def sweep(folder: Path, point: Point) -> RunFinding:
    (group,) = collect(SWEEP, groups_of(folder, point), folder)
    found = run_of(group, BEST_FIXED)
    assert found is not None
    return found


def test_states_and_reasons(tmp_path: Path):
    done, failed, killed, missing = (ili(seed) for seed in (1, 2, 3, 4))
    run_all(tmp_path, done)
    groups = groups_of(tmp_path, done, failed, killed, missing)
    record_job_failure(groups[1].jobs[0], tmp_path, "the loss is nan.", killed=False)
    record_job_failure(groups[2].jobs[0], tmp_path, "killed by SIGKILL.", killed=True)
    found = collect(PAIR, groups, tmp_path)
    assert [run.state for group in found for run in group.runs] == [
        *("done", "done", "failed", "missing"),
        *("failed", "missing", "missing", "missing"),
    ]
    assert found[1].runs[0].reason == "the loss is nan."
    assert found[2].runs[0].reason == "killed by SIGKILL."
    coverage = tabulate(PAIR, found).coverage
    assert vars(coverage) == {"total": 8, "done": 2, "failed": 2, "missing": 4, "declared": 8}


def test_what_a_run_says(tmp_path: Path):
    run_all(tmp_path, ili())
    (group,) = collect(PAIR, groups_of(tmp_path, ili()), tmp_path)
    raw, sacm = group.runs
    record = read_json(tmp_path / str(raw.run) / "metrics.json")
    assert raw.values == {name: record["test"][name] for name in ("mse", "mae")}
    assert (raw.epochs, raw.seconds) == (2, record["train_seconds"])
    assert [epoch.epoch for epoch in raw.history] == [1, 2]
    assert raw.history[0].rate_mean is None
    assert 0.05 < sacm.history[1].rate_mean < 0.5
    best = min(epoch.validation for epoch in raw.history)
    assert best == pytest.approx(record["best_val_mae"], rel=1e-4)
    assert (group.keys, group.size) == (ili().keys, "small")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("history.csv", None),
        ("history.csv", ""),
        ("metrics.json", "{}"),
        ("metrics.json", "[]"),
        ("metrics.json", '{"test": '),
    ],
)
def test_one_damaged_run_does_not_take_the_table_with_it(tmp_path: Path, file: str, text: str):
    run_all(tmp_path, ili())
    (group,) = collect(PAIR, groups_of(tmp_path, ili()), tmp_path)
    path = tmp_path / str(group.runs[0].run) / file
    path.unlink() if text is None else path.write_text(text)
    (group,) = collect(PAIR, groups_of(tmp_path, ili()), tmp_path)
    damaged, whole = group.runs
    assert (damaged.state, whole.state) == ("failed", "done")
    assert "damaged" in str(damaged.reason)


def test_a_run_says_what_it_was_made_with(tmp_path: Path):
    run_all(tmp_path, ili())
    (group,) = collect(PAIR, groups_of(tmp_path, ili()), tmp_path)
    said = {str(run.made_with) for run in group.runs}
    assert len(said) == 1
    assert "torch 2." in said.pop()


def test_a_metric_that_is_undefined_is_left_out(tmp_path: Path):
    run_all(tmp_path, ili(strategies=("raw",)))
    (path,) = tmp_path.glob("*/metrics.json")
    record = read_json(path)
    write_json(path, {**record, "test": {**record["test"], "mae": None}})
    (group,) = collect(PAIR, groups_of(tmp_path, ili(strategies=("raw",))), tmp_path)
    assert list(group.runs[0].values) == ["mse"]


def test_ties_between_fixed_rates_go_to_the_smaller(tmp_path: Path):
    point = ili(strategies=RATES, select="mse", epochs=1)
    run_all(tmp_path, point)
    jobs = groups_of(tmp_path, point)[0].jobs
    for job, value in zip(jobs, (0.1, 0.9, 0.4, 0.4), strict=True):
        path = tmp_path / job.run_id / "metrics.json"
        write_json(path, {**read_json(path), "best_val_mse": value})
    best = sweep(tmp_path, point)
    assert best.run == jobs[2].run_id  # raw is not one of them, however good
    assert best.chosen == "fixed(p=0.1)"


def test_no_best_rate_before_all_have_been_tried(tmp_path: Path):
    point = ili(strategies=RATES, select="mse", epochs=1)
    run_all(tmp_path, replace(point, strategies=RATES[:3]))
    assert vars(sweep(tmp_path, point))["state"] == "missing"
    last = groups_of(tmp_path, point)[0].jobs[-1]
    record_job_failure(last, tmp_path, "the loss is nan.", killed=False)
    best = sweep(tmp_path, point)
    assert (best.state, best.reason) == ("failed", "not every fixed rate has been run")
    assert best.values is None
