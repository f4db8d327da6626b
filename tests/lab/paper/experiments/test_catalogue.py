"""Every experiment of the paper, from its declaration to its reports, in a tiny size."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from sacm.data import load
from sacm.errors import ArgumentError
from sacm.experiments.grid import Grid
from sacm.experiments.named.collect import collect
from sacm.experiments.named.experiment import BEST_FIXED, points
from sacm.experiments.named.findings import FindingRow, Group, RunFinding
from sacm.experiments.named.pairs import run_of
from sacm.experiments.named.tabulate import read_findings
from sacm.experiments.plan import make_plan
from sacm.files import read_json, write_json
from sacm.metrics.catalogue import metric
from sacm.reports.named.headline import experiment_headline
from sacm.reports.named.render import render
from sacm.reports.named.tables import overall_table, result_table
from sacm.strategies.registry import canonical
from sacm.training.run import Run
from sacm_lab.paper.experiments.catalogue import EXPERIMENTS, find
from sacm_lab.paper.published.tables import read_published
from tests.experiments.tiny import PARTS, Carried, carry_out, tiny

pytestmark = pytest.mark.slow

# What the files of published numbers say for a row of each tiny experiment:
# keys beyond data and backbone, metric, strategy, the baseline's number, the strategy's.
PRINTED: dict[str, list[tuple[dict[str, object], str, str, float | None, float]]] = {
    "synth12": [({}, "mse", "sacm", 0.554, 0.548), ({}, "mae", "sacm", 0.566, 0.560)],
    "real_forecasting": [({}, "mse", "sacm", 3.163, 2.994), ({}, "mae", "sacm", 1.069, 1.048)],
    "rates": [({}, "rate_mean", "sacm", None, 0.267), ({}, "rate_std", "sacm", None, 0.139)],
    "data_fraction": [
        ({"train_fraction": 0.25}, "mae", "sacm", 1.156, 1.144),
        ({"train_fraction": 1.0}, "mse", "sacm", 3.321, 2.942),
    ],
    "zero_shot": [
        ({"target": "ETTm2"}, "mae", "sacm", 0.319, 0.318),
        ({"target": "ETTh2"}, "mse", "sacm", 0.406, 0.404),
    ],
    "classification": [({}, "accuracy", "sacm", 0.925, 0.95)],
    "anomaly": [({}, "f1_pa", "sacm", 0.53, 0.8176), ({}, "recall_pa", "sacm", 0.3893, 0.7618)],
    "strategies": [
        ({"horizon": 48}, "mse", "best_fixed", 2.939, 2.956),
        ({"horizon": 48}, "mae", "learned_global", 1.099, 1.095),
    ],
    "fixed_sweep": [
        ({"horizon": 48}, "mse", "fixed(p=0.35)", None, 3.286),
        ({"horizon": 48}, "mae", "best_fixed", None, 1.111),
    ],
    "ablation": [
        ({}, "mse", "sacm(detrend=endpoint)", 1.228, 1.416),
        ({}, "mae", "sacm(detrend=none,log_norm=false,sfm_anchor=false)", 0.862, 1.034),
    ],
    "gamma": [],
    "batch_size": [({"batch_size": 16}, "mse", "sacm", None, 0.391424)],
    "efficiency": [
        ({}, "seconds_per_epoch", "sacm", 102.3, 113.7),
        ({}, "epochs", "sacm", 20, 16),
        ({}, "train_seconds", "sacm", 2045, 1819),
    ],
    "selective": [
        ({"horizon": 60}, "mse", "selective+sacm", 7.14, 6.336),
        ({"horizon": 60}, "train_seconds", "selective", 20.0, 15.1),
    ],
    "denoise": [({}, "mae", "hard_denoise(kind=lowpass)", 1.11, 1.162)],
    "paired_seeds": [({"horizon": 24}, "mse", "sacm", 3.3997, 2.8384)],
}


@pytest.fixture(scope="module", params=list(EXPERIMENTS))
def carried(request, stand_in: Path, tmp_path_factory) -> Carried:
    return carry_out(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def moved(stand_in: Path, tmp_path_factory) -> Carried:
    return carry_out("zero_shot", tmp_path_factory.mktemp("moved"))


def test_every_run_is_done(carried: Carried):
    experiment, findings = carried.experiment, carried.findings
    runs = len(carried.groups) * len(experiment.strategies)
    assert (findings.coverage.done, findings.coverage.total) == (runs, runs)
    assert carried.tally.failed == ()
    assert (carried.tally.done, carried.tally.left) == (carried.plan.jobs_left, 0)
    again = make_plan(carried.groups, carried.folder)
    assert (again.todo, again.jobs_left, again.seconds_left) == ([], 0, 0)


def test_a_row_for_each_place_metric_and_strategy(carried: Carried):
    experiment, rows = carried.experiment, carried.findings.rows
    places = {tuple(group.point.keys[key] for key in experiment.rows) for group in carried.groups}
    shown = experiment.shown_strategies
    others = [name for name in shown if name != experiment.strategies[0]] or list(shown)
    found = [(tuple(row.keys.values()), row.metric, row.strategy) for row in rows]
    assert sorted(found, key=str) == sorted(
        (
            (place, name, other)
            for place in places
            for name in experiment.metrics
            for other in others
        ),
        key=str,
    )
    for row in rows:
        assert row.n == row.expected == len(row.groups) >= 1
        assert row.value is not None
        assert math.isfinite(row.value.mean)
        if len(shown) > 1:
            assert math.isfinite(row.baseline.mean)
            assert math.isfinite(row.gain)


def test_rows_are_what_the_run_folders_say(carried: Carried):
    """Averaged by hand over the groups of the row, from metrics.json."""
    experiment = carried.experiment
    if experiment.task == "forecasting" and not experiment.targets and "mse" in experiment.metrics:
        for row in carried.findings.rows:
            if row.metric in ("mse", "mae") and row.strategy != BEST_FIXED:
                assert row.value.mean == pytest.approx(mean(carried, row, row.strategy))
                before = mean(carried, row, experiment.strategies[0])
                assert row.baseline.mean == pytest.approx(before)
                assert row.gain == pytest.approx(100 * (before - row.value.mean) / before)


def mean(carried: Carried, row: FindingRow, strategy: str) -> float:
    values = [
        read_json(carried.folder / run_id / "metrics.json")["test"][row.metric]
        for run_id in (carried_run(carried.findings.groups[i], strategy).run for i in row.groups)
    ]
    return sum(values) / len(values)


def carried_run(group: Group, strategy: str) -> RunFinding:
    run = run_of(group, strategy)
    assert run is not None
    return run


def test_the_papers_number_stands_beside_ours(carried: Carried):
    data, backbone, _ = PARTS[carried.experiment.name]
    for keys, name, strategy, baseline, value in PRINTED[carried.experiment.name]:
        wanted = {"data": data, "backbone": backbone, **keys}
        (row,) = [
            row
            for row in carried.findings.rows
            if (row.metric, row.strategy) == (name, strategy)
            and all(row.keys[key] == wanted[key] for key in row.keys)
        ]
        assert row.paper is not None
        assert (row.paper.baseline, row.paper.value) == (baseline, value)
        if baseline is None:
            assert row.paper.gain is None
        elif metric(name).share:
            assert row.paper.gain == pytest.approx(100 * (value - baseline))
        else:
            better = value - baseline if metric(name).higher_is_better else baseline - value
            # Where the gain is printed too, with a digit after the point, that is what is shown.
            assert row.paper.gain == pytest.approx(100 * better / baseline, abs=0.05)


def test_findings_survive_json(carried: Carried, tmp_path: Path):
    write_json(tmp_path / "findings.json", carried.findings.to_dict())
    assert read_findings(tmp_path / "findings.json") == carried.findings


@pytest.mark.parametrize("style", ["md", "latex", "csv", "html"])
def test_every_report_can_be_made(carried: Carried, style):
    text = render(carried.findings, style)
    label = metric(carried.experiment.metrics[0])
    assert (label.name if style == "csv" else label.label) in text
    if style in ("md", "html"):
        assert carried.findings.title in text


def test_the_terminal_shows_it(carried: Carried):
    console = Console(file=io.StringIO(), width=200)
    console.print(result_table(carried.findings).rich())
    if carried.findings.overall:
        console.print(overall_table(carried.findings).rich())
    printed = console.file.getvalue()
    assert metric(carried.experiment.metrics[0]).label in printed
    assert experiment_headline(carried.findings)


def test_the_best_fixed_rate_is_chosen_by_validation(stand_in, tmp_path: Path):
    few = tiny("fixed_sweep", settings={"epochs": 1, "stride": 40})
    carried = carry_out("fixed_sweep", tmp_path, few)
    (group,) = carried.findings.groups
    fixed = [run for run in group.runs if run.strategy.startswith("fixed(")]
    assert [run.strategy for run in fixed] == [f"fixed(p={p / 100})" for p in range(0, 55, 5)]
    errors = [read_json(tmp_path / run.run / "metrics.json")["best_val_mse"] for run in fixed]
    first_best = fixed[int(np.argmin(errors))]
    best = carried_run(group, BEST_FIXED)
    assert (best.run, best.values) == (first_best.run, first_best.values)
    assert best.chosen == first_best.strategy
    (row,) = [
        row for row in carried.findings.rows if (row.metric, row.strategy) == ("mse", BEST_FIXED)
    ]
    assert row.value.mean == first_best.values["mse"]


@pytest.mark.parametrize("target", ["ETTh2", "ETTm2"])
@pytest.mark.parametrize("strategy", ["raw", "sacm"])
def test_zero_shot_is_the_source_model_on_the_targets_own_scale(moved: Carried, target, strategy):
    (group,) = [group for group in moved.findings.groups if group.keys["target"] == target]
    found = carried_run(group, strategy)
    run = Run(moved.folder / str(found.run))
    assert run.settings.data == "ETTh1"
    model = run.load_model().eval()
    other = load(target)
    train = other.values[other.splits.train.start : other.splits.train.stop].astype(np.float64)
    scaled = (other.values - train.mean(0)) / train.std(0)
    test = torch.tensor(scaled[other.splits.test.start : other.splits.test.stop]).float()
    windows = test.unfold(0, 192, 1).transpose(1, 2)  # [N, 96 + 96, C]
    with torch.inference_mode():
        error = model(windows[:, :96]) - windows[:, 96:]
    assert found.values["mse"] == pytest.approx(float(error.square().mean()), rel=1e-4)
    assert found.values["mae"] == pytest.approx(float(error.abs().mean()), rel=1e-4)
    record = read_json(run.folder / f"on_{target}.json")
    assert record["evaluated_windows"] == len(windows) == 9


def test_zero_shot_trains_each_source_once(moved: Carried):
    assert (len(moved.groups), moved.findings.coverage.done, moved.tally.done) == (2, 4, 2)
    assert len(list(moved.folder.glob("*/metrics.json"))) == 2


def test_rates_are_those_of_the_last_epoch(stand_in, tmp_path: Path):
    carried = carry_out("rates", tmp_path)
    (run,) = carried.findings.groups[0].runs
    last = Run(tmp_path / str(run.run)).history[-1]
    assert run.values == {name: float(last[name]) for name in ("rate_mean", "rate_std")}
    assert int(last["epoch"]) == run.epochs == len(run.history) == 2
    assert carried.findings.overall == ()  # there is nothing to compare with


def test_costs_are_those_of_the_run(stand_in, tmp_path: Path):
    carried = carry_out("efficiency", tmp_path)
    for run in carried.findings.groups[0].runs:
        record = read_json(tmp_path / str(run.run) / "metrics.json")
        assert run.values == {
            "epochs": record["epochs"],
            "train_seconds": record["train_seconds"],
            "seconds_per_epoch": record["train_seconds"] / 2,
        }
        assert (run.epochs, run.seconds) == (2, record["train_seconds"])


def test_absent_data_are_named_and_left_out(stand_in, tmp_path: Path):
    experiment = find("real_forecasting")
    selection = tiny("real_forecasting", datasets=("ILI", "Weather"), horizons=(24, 96))
    groups = Grid(selection, tmp_path).groups(points(experiment, selection))
    assert [group.absent for group in groups] == [None, "Weather"]
    plan = make_plan(groups, tmp_path)
    assert plan.jobs_left == 2
    found = collect(experiment, groups, tmp_path)
    assert {run.reason for run in found[1].runs} == {
        "Weather is not on this machine: sacm data get 'Weather'"
    }
    assert {run.state for run in found[1].runs} == {"missing"}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_declarations_hold_together(experiment):
    """Spellings that do not match would silently leave a row without runs or without the paper."""
    for name in experiment.strategies:
        assert canonical(name) == name
    assert set(experiment.shown_strategies) <= {*experiment.strategies, BEST_FIXED}
    for name in experiment.metrics:
        metric(name)
    point = points(experiment, tiny(experiment.name))[0]
    assert set(experiment.rows) <= set(point.keys)
    every = points(experiment, tiny(experiment.name, datasets=(), backbones=(), horizons=()))
    for data in experiment.datasets:
        assert any(one.keys["data"] == data for one in every)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_printed_number_has_its_row(experiment):
    """Each published value fits exactly the rows of one place of the declared grid."""
    every = tiny(experiment.name, datasets=(), backbones=(), horizons=(), settings={})
    rows = {
        tuple((key, point.keys[key]) for key in experiment.rows)
        for point in points(experiment, every)
    }
    for value in read_published(experiment.name):
        assert value.metric in experiment.metrics
        assert value.strategy in experiment.shown_strategies
        fitting = [row for row in rows if value.fits(dict(row), value.metric, value.strategy)]
        assert fitting, value


def test_an_experiment_by_a_wrong_name():
    assert find("zero_shot").name == "zero_shot"
    with pytest.raises(
        ArgumentError, match=r"no experiment 'zero_shots'. Did you mean 'zero_shot'"
    ):
        find("zero_shots")
    with pytest.raises(ArgumentError, match="Experiments: synth12, real_forecasting"):
        find("everything")
