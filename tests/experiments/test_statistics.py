"""Statistics against independent formulas."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sacm.experiments.statistics import (
    bootstrap_interval,
    holm,
    paired_t_test,
    t_interval,
    wilcoxon_test,
)

BEFORE = [4.354, 3.996, 4.307, 4.182, 4.07]
AFTER = [3.957, 3.759, 3.866, 3.868, 4.09]


def test_the_paired_t_test_is_scipys() -> None:
    gained = np.subtract(BEFORE, AFTER)
    assert paired_t_test(gained) == pytest.approx(stats.ttest_rel(BEFORE, AFTER).pvalue)
    assert paired_t_test([0.1]) is None
    assert paired_t_test([0.1, 0.1]) is None
    assert paired_t_test([0.0, 0.0]) is None


def test_the_t_interval_is_scipys() -> None:
    low, high = t_interval(BEFORE, confidence=0.9)
    found = stats.ttest_1samp(BEFORE, 0).confidence_interval(0.9)
    assert (low, high) == pytest.approx((found.low, found.high))
    assert t_interval([1.0]) == (None, None)


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


def test_holm_by_hand() -> None:
    # .01 * 4, .02 * 3, max(.06, .03 * 2), max(.06, .5)
    expected = [0.06, 0.04, None, 0.5, 0.06]
    assert holm([0.02, 0.01, None, 0.5, 0.03]) == pytest.approx(expected)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
