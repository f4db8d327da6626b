"""Pairs of runs, and statistics against independent formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sacm.experiments.gains import holm, pair, paired_t_test, summarise, t_interval

BEFORE = [4.354, 3.996, 4.307, 4.182, 4.07]
AFTER = [3.957, 3.759, 3.866, 3.868, 4.09]


def test_the_paired_t_test_is_scipys() -> None:
    gained = np.subtract(BEFORE, AFTER)
    assert paired_t_test(gained) == pytest.approx(stats.ttest_rel(BEFORE, AFTER).pvalue)
    assert paired_t_test([0.1]) is None
    assert paired_t_test([0.1, 0.1]) is None
    assert paired_t_test([0.0, 0.0]) is None


def test_the_t_interval_is_scipys() -> None:
    low, high = t_interval(BEFORE)
    found = stats.ttest_1samp(BEFORE, 0).confidence_interval()
    assert (low, high) == pytest.approx((found.low, found.high))
    assert t_interval([1.0]) == (None, None)


def test_a_summary_by_hand() -> None:
    frame = pd.DataFrame({"seed": [*range(5)] * 2, "strategy": ["raw"] * 5 + ["sacm"] * 5})
    frame["mse"] = [*BEFORE, *AFTER]
    pairs = pair(frame, ["mse"], baseline="raw", shared=["seed"])
    (row,) = summarise(pairs).to_dict("records")
    gains = 100 * np.subtract(BEFORE, AFTER) / BEFORE
    assert row["gain"] == pytest.approx(gains.mean())
    assert (row["low"], row["high"]) == pytest.approx(t_interval(gains))
    assert (row["wins"], row["ties"], row["losses"], row["n"]) == (4, 0, 1, 5)
    assert row["p"] == row["p_holm"] == pytest.approx(stats.ttest_rel(BEFORE, AFTER).pvalue)


def test_holm_by_hand() -> None:
    # .01 * 4, .02 * 3, max(.06, .03 * 2), max(.06, .5)
    expected = [0.06, 0.04, None, 0.5, 0.06]
    assert holm([0.02, 0.01, None, 0.5, 0.03]) == pytest.approx(expected)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
