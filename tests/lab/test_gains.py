"""Gains over a baseline, by cell and over cells."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sacm.errors import ArgumentError
from sacm.experiments.gains import holm
from sacm_lab.gains import bootstrap_interval, pair_runs, summarise_gains, wilcoxon_test


def run(strategy: str, seed: int, mse: float | None, **others: Any) -> dict[str, Any]:
    row = {"task": "forecasting", "data": "ILI", "backbone": "PatchTST", "size": "paper"}
    row |= {"horizon": 24, "strategy": strategy, "seed": seed, "mse": mse, "state": "done"}
    row |= {"seconds": 10.0, "seconds_per_epoch": 1.0, "select": "mae", **others}
    return {"run": f"{strategy}-{row['horizon']}-{row['size']}-{seed}", **row}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def test_pairs_share_everything_but_the_strategy() -> None:
    runs = frame(
        run("raw", 1, 4.0),
        run("sacm", 1, 3.0),
        run("sacm", 2, 9.0),  # no raw of this seed
        run("sacm", 1, 1.0, size="small"),  # none of this size
        run("guard", 1, None),
    )
    (pair,) = pair_runs(runs, ["mse"]).to_dict("records")
    assert (pair["strategy"], pair["before"], pair["after"], pair["gain"]) == ("sacm", 4, 3, 25)


def test_shares_gain_points_and_scores_gain_upwards() -> None:
    rows = [run("raw", 1, None, accuracy=0.5), run("sacm", 1, None, accuracy=0.6)]
    (pair,) = pair_runs(frame(*rows), ["accuracy"]).to_dict("records")
    assert pair["gain"] == pytest.approx(10)
    assert pair["improvement"] == pytest.approx(0.1)


def test_values_that_are_almost_equal_tie_and_nothing_is_a_share_of_zero() -> None:
    rows = [run("raw", 1, 0.1 + 0.2), run("sacm", 1, 0.3), run("raw", 2, 0.0), run("sacm", 2, 1.0)]
    first, second = pair_runs(frame(*rows), ["mse"]).to_dict("records")
    assert (first["improvement"], first["gain"]) == (0, 0)
    assert second["improvement"] == -1
    assert np.isnan(second["gain"])


def test_one_cell_by_hand() -> None:
    before, after = [4.354, 3.996, 4.307, 4.182], [3.957, 3.759, 3.866, 4.2]
    rows = [run("raw", s, v) for s, v in enumerate(before)]
    rows += [run("sacm", s, v) for s, v in enumerate(after)]
    (row,) = summarise_gains(pair_runs(frame(*rows), ["mse"])).to_dict("records")
    gains = 100 * (np.array(before) - after) / before
    found = stats.ttest_1samp(gains, 0).confidence_interval()
    assert row["gain"] == pytest.approx(gains.mean())
    assert (row["low"], row["high"]) == pytest.approx((found.low, found.high))
    assert (row["wins"], row["ties"], row["losses"], row["n"]) == (3, 0, 1, 4)
    assert row["p"] == pytest.approx(stats.ttest_rel(before, after).pvalue)
    deviation = np.std(before, ddof=1)
    assert row["in_deviations"] == pytest.approx((np.mean(before) - np.mean(after)) / deviation)
    assert row["cells_low"] is None or np.isnan(row["cells_low"])


def test_cells_count_alike_and_sizes_are_never_mixed() -> None:
    rows = []
    for horizon in range(6):
        for seed in range(2 if horizon else 4):  # the first cell has more seeds
            rows += [run("raw", seed, 10.0, horizon=horizon)]
            rows += [run("sacm", seed, 10.0 - horizon + seed / 10, horizon=horizon)]
    rows += [run("raw", 1, 1.0, size="small"), run("sacm", 1, 2.0, size="small")]
    pairs = pair_runs(frame(*rows), ["mse"])
    large, small = summarise_gains(pairs).to_dict("records")
    assert (large["size"], small["size"], small["gain"]) == ("paper", "small", -100)
    means = [np.mean([10 * h - s for s in range(2 if h else 4)]) for h in range(6)]
    assert large["gain"] == pytest.approx(np.mean(means))
    assert (large["cells_low"], large["cells_high"]) == bootstrap_interval(means)
    assert (large["n"], large["cells"]) == (14, 6)
    by_cell = summarise_gains(pairs, ["horizon"])
    assert by_cell[by_cell["size"] == "paper"]["gain"].tolist() == pytest.approx(means)


def test_the_interval_over_seeds_is_about_the_seeds_and_not_the_cells() -> None:
    rows = []
    for horizon, level in ((24, 2.0), (36, 8.0)):
        for seed, noise in enumerate((-0.1, 0.0, 0.1)):
            rows += [run("raw", seed, 10.0, horizon=horizon)]
            rows += [run("sacm", seed, 10.0 - level + noise, horizon=horizon)]
    (row,) = summarise_gains(pair_runs(frame(*rows), ["mse"])).to_dict("records")
    expected = stats.ttest_1samp([49.0, 50.0, 51.0], 0).confidence_interval()
    assert row["gain"] == pytest.approx(50)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    assert row["p"] == pytest.approx(2 / 2**6)  # six pairs, all better


def test_holm_corrects_over_the_rows_of_a_metric_and_size() -> None:
    random = np.random.default_rng(0)
    rows = [run("raw", s, 10 + random.normal()) for s in range(5)]
    for name, shift in (("a", 2.0), ("b", 0.1), ("c", 0.5)):
        rows += [run(name, s, 10 - shift + random.normal()) for s in range(5)]
    table = summarise_gains(pair_runs(frame(*rows), ["mse"]))
    assert table["p_holm"].tolist() == pytest.approx(holm(table["p"].tolist()))


def test_two_runs_in_one_place_are_refused_with_the_option_that_chooses() -> None:
    rows = [run("raw", 1, 1.0, stride=1), {**run("raw", 1, 2.0, stride=4), "run": "other"}]
    with pytest.raises(ArgumentError, match=r"two runs, raw-24-paper-1 and other; .* --where str"):
        pair_runs(frame(*rows), ["mse"])


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=9))
def test_wilcoxon_is_the_sum_over_all_sign_patterns(values: list[int]) -> None:
    moved = np.array([value for value in values if value], dtype=float)
    if len(moved) < 2:
        assert wilcoxon_test(values) is None
        return
    ranks = stats.rankdata(np.abs(moved))
    observed = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    sums = [
        sum(r for r, up in zip(ranks, signs, strict=True) if up)
        for signs in product((0, 1), repeat=len(ranks))
    ]
    expected = min(1.0, 2 * np.mean([total <= observed + 1e-9 for total in sums]))
    assert wilcoxon_test(values) == pytest.approx(expected)


def test_wilcoxon_of_distinct_and_of_many_differences_is_scipys() -> None:
    random = np.random.default_rng(0)
    few, many = random.normal(0.3, 1, 12), random.normal(0.3, 1, 80)
    assert wilcoxon_test(few) == pytest.approx(stats.wilcoxon(few).pvalue)
    expected = stats.wilcoxon(many, method="approx", correction=False).pvalue
    assert wilcoxon_test(many) == pytest.approx(expected)
    assert wilcoxon_test([1, 2, 3, 4, 5]) == 0.0625


def test_the_bootstrap_encloses_the_mean_and_does_not_hang_on_the_order() -> None:
    values = np.random.default_rng(1).normal(2, 1, 60)
    low, high = bootstrap_interval(values)
    assert low is not None
    assert high is not None
    width = 2 * 1.96 * values.std(ddof=1) / np.sqrt(60)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.03)
    assert high - low == pytest.approx(width, rel=0.08)
    assert bootstrap_interval(values[::-1]) == (low, high)
    assert bootstrap_interval([1, 2, 3, 4]) == (None, None)
