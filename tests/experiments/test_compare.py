from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sacm.data.datasets import ForecastingData
from sacm.data.splits import split_by_ratio
from sacm.errors import ArgumentError, DataError
from sacm.experiments.compare import Comparison, compare, compare_runs
from sacm.experiments.statistics import compare_pairs
from sacm.tasks import make_settings
from sacm.training import Hardware
from tests.experiments.cases import write_pairs, write_run

QUIET = Hardware(show_progress=False)


def test_an_error_metric_worked_by_hand(tmp_path):
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0, 4.0, 3.0], [1.0, 3.0, 3.5]))
    pair = found.pair("sacm", "mse")
    result = pair.result
    assert pair.n == result.n == 3
    assert (found.strategies, found.seeds) == (("raw", "sacm"), (1, 2, 3))
    assert (result.raw.mean, result.raw.std) == (3.0, 1.0)
    assert result.treated.mean == 2.5
    assert result.treated.std == pytest.approx(math.sqrt(1.75))
    # The paper's relative gain of an error, of the means; then the mean of 50, 25 and -50/3.
    assert result.gain_of_means == pytest.approx(100 * (3.0 - 2.5) / 3.0)
    assert result.mean_gain == pytest.approx((50 + 25 - 50 / 3) / 3)
    # Improvements 1, 1, -0.5: mean 0.5, deviation sqrt(0.75), so t = 1 with two degrees.
    assert result.t_test.statistic == pytest.approx(1.0)
    assert result.t_test.p_value == pytest.approx(1 - 1 / math.sqrt(3))
    # Ranks 2.5, 2.5, 1: two of the eight sign patterns have a rank sum of at most 1.
    assert (result.wilcoxon.statistic, result.wilcoxon.p_value) == (1.0, 0.5)
    counts = result.win_tie_loss
    assert (counts.wins, counts.ties, counts.losses) == (2, 0, 1)
    assert result.gain_interval.n == 3
    assert "too few" in result.gain_interval.reason


def test_a_score_metric_goes_the_other_way(tmp_path):
    runs = write_pairs(
        tmp_path,
        "accuracy",
        [0.5, 0.8],
        [0.6, 0.8],
        task="classification",
        backbone="InceptionTime",
    )
    result = compare_runs(runs).pair("sacm", "accuracy").result
    assert result.higher_is_better
    assert result.gain_of_means == pytest.approx(100 * (0.7 - 0.65) / 0.65)
    assert (result.win_tie_loss.wins, result.win_tie_loss.ties) == (1, 1)


def test_one_seed_has_no_spread_and_no_test(tmp_path):
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0], [1.0]))
    result = found.pair("sacm", "mse").result
    assert found.summary("raw").metrics["mse"].std is None
    assert result.t_test.p_value is None
    assert result.gain_interval.low is None
    assert result.gain_of_means == 50.0


def test_undefined_results_leave_their_pair_out(tmp_path):
    options = {"task": "anomaly", "backbone": "TranAD"}
    runs = write_pairs(tmp_path, "vus_pr", [0.5, None, 0.4], [0.6, 0.9, 0.5], **options)
    found = compare_runs(runs)
    pair = found.pair("sacm", "vus_pr")
    assert (pair.n, pair.reason) == (2, "undefined for 1 of 3 pairs")
    assert pair.result.raw.mean == pytest.approx(0.45)
    assert found.summary("sacm").metrics["vus_pr"].n == 3


def test_a_metric_that_no_pair_has(tmp_path):
    options = {"task": "anomaly", "backbone": "TranAD"}
    found = compare_runs(write_pairs(tmp_path, "auc_pr", [None, 0.3], [0.3, None], **options))
    pair = found.pair("sacm", "auc_pr")
    assert (pair.n, pair.result) == (0, None)
    assert pair.reason == "undefined for every pair of runs"


def test_costs_and_rates(tmp_path):
    runs = [
        write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0}, epochs=4, seconds=2.0),
        write_run(tmp_path, strategy="raw", seed=2, row={"mse": 1.0}, epochs=6, seconds=6.0),
        write_run(tmp_path, strategy="sacm", seed=1, row={"mse": 1.0}, rates=(0.2, 0.05)),
        write_run(tmp_path, strategy="sacm", seed=2, row={"mse": 1.0}, rates=(0.4, 0.15)),
    ]
    found = compare_runs(runs)
    raw, sacm = found.summaries
    assert (raw.epochs.mean, raw.seconds.mean, raw.seconds_per_epoch.mean) == (5.0, 4.0, 0.75)
    assert raw.rate_mean is raw.rate_spread is None
    assert sacm.rate_mean.mean == pytest.approx(0.3)
    assert sacm.rate_mean.std == pytest.approx(math.sqrt(0.02))
    assert sacm.rate_spread.mean == pytest.approx(0.1)


def test_three_strategies_are_each_measured_by_the_first(tmp_path):
    values = {"raw": 4.0, "fixed(p=0.3)": 2.0, "sacm": 5.0}
    runs = [
        write_run(tmp_path, strategy=strategy, seed=seed, row={"mse": value + seed})
        for seed in (1, 2)
        for strategy, value in values.items()
    ]
    found = compare_runs(runs)
    assert found.strategies == tuple(values)
    assert found.pair("fixed(p=0.3)", "mse").result == compare_pairs([5.0, 6.0], [3.0, 4.0])
    assert found.pair("sacm", "mse").result == compare_pairs([5.0, 6.0], [6.0, 7.0])
    assert found.run("sacm", 2).row == {"mse": 7.0}


def test_random_references_are_not_compared(tmp_path):
    row = {"f1_pa": 0.9, "f1_pa_random": 0.8, "f1_pa_random_std": 0.01, "f1": 0.2}
    runs = [
        write_run(tmp_path, strategy=s, seed=1, row=row, task="anomaly", backbone="TranAD")
        for s in ("raw", "sacm")
    ]
    found = compare_runs(runs)
    assert found.metrics == ["f1_pa", "f1"]
    assert found.summary("raw").metrics["f1_pa_random"].mean == 0.8


def test_json_round_trip(tmp_path):
    ili = {"data": "ILI", "backbone": "PatchTST"}
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0, 4.0], [1.0, 4.0], **ili))
    assert found.paper is not None
    again = Comparison.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again == found
    with pytest.raises(DataError, match="not a comparison: strategies"):
        Comparison.from_dict({"settings": {}})


def test_the_papers_row_is_laid_beside_a_matching_setting(tmp_path):
    ili = {"data": "ili", "backbone": "PatchTST"}
    found = compare_runs(write_pairs(tmp_path, "mse", [2.0], [1.0], **ili))
    assert (found.paper.raw_mean, found.paper.gain, found.paper.n) == (3.3997, 16.5, 5)
    assert found.paper_differences == ("seeds 1 instead of 2022 to 2026",)
    (tmp_path / "other").mkdir()
    other = write_pairs(tmp_path / "other", "mse", [2.0], [1.0], **ili, horizon=36)
    assert compare_runs(other).paper is None
    (tmp_path / "longer").mkdir()
    longer = write_pairs(tmp_path / "longer", "mse", [2.0], [1.0], **ili, input_len=96)
    assert compare_runs(longer).paper is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 48}, "has horizon = 48 where .* has 24: these runs are not pairs"),
        ({"fingerprint": "f" * 16}, "saw other data than"),
        ({"seed": 2}, "raw has no run with seed 2"),
    ],
)
def test_runs_that_are_no_pairs(tmp_path, change, message):
    raw = write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0})
    options = {"strategy": "sacm", "seed": 1, "row": {"mse": 1.0}, **change}
    with pytest.raises(ArgumentError, match=message):
        compare_runs([raw, write_run(tmp_path, **options)])


def test_runs_without_a_test(tmp_path):
    runs = [write_run(tmp_path, strategy=s, seed=1, row=None) for s in ("raw", "sacm")]
    with pytest.raises(DataError, match="waves has no test windows"):
        compare_runs(runs)


@pytest.mark.parametrize(
    ("strategies", "seeds", "message"),
    [
        (["raw"], [1], "at least two strategies"),
        (["raw", "sacm"], [], "at least one seed"),
        (["raw", "sacm"], [1, 1], "seed 1 is named twice"),
        (["sacm", "sacm(p_max=0.5)"], [1], "strategy sacm is named twice"),
        (["raw", "sacmm"], [1], "Did you mean 'sacm'"),
        (["raw", "sacm"], [-1], "seed = -1"),
    ],
)
def test_comparisons_that_cannot_be_made(tmp_path, strategies, seeds, message):
    base = make_settings(task="forecasting", data="Synth-12")
    with pytest.raises(ArgumentError, match=message):
        compare(base, strategies, seeds, folder=tmp_path, data=waves())


def waves() -> ForecastingData:
    time = np.arange(160.0)
    noise = np.random.default_rng(0).normal(size=(160, 2))
    values = np.sin(time[:, None] / [3, 5]) + 0.2 * noise
    return ForecastingData(
        "waves", values.astype(np.float32), ("a", "b"), split_by_ratio(160, (0.6, 0.2, 0.2))
    )


def test_training_every_strategy_with_every_seed_once(tmp_path):
    base = make_settings(
        task="forecasting",
        data="waves",
        backbone="iTransformer",
        size="small",
        input_len=12,
        horizon=4,
        epochs=1,
    )
    started = []

    def on_start(settings, number, total):
        started.append((settings.strategy, settings.seed, number, total))

    options = {"folder": tmp_path, "hardware": QUIET, "data": waves(), "on_start": on_start}
    found = compare(base, ["raw", "sacm"], [7, 8], **options)
    assert started == [("raw", 7, 1, 4), ("sacm", 7, 2, 4), ("raw", 8, 3, 4), ("sacm", 8, 4, 4)]
    assert found.metrics == ["mse", "mae", "mse_raw", "mae_raw"]
    assert found.settings["horizon"] == 4
    assert found.settings["batch_size"] == 32
    assert not {"strategy", "seed"} & found.settings.keys()
    assert found.run("sacm", 7).rate_mean is not None
    values = [found.run("raw", seed).row["mse"] for seed in (7, 8)]
    assert found.summary("raw").metrics["mse"].mean == pytest.approx(np.mean(values))
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert compare(base, ["raw", "sacm"], [7, 8], **options) == found
    assert written == {path: path.stat().st_mtime_ns for path in written}
    assert len(written) == len([path for path in tmp_path.rglob("*") if path.is_file()])
