from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from sacm.errors import ArgumentError
from sacm.experiments.statistics import (
    bootstrap_mean,
    compare_pairs,
    holm,
    improvements,
    mean_and_deviation,
    paired_t_test,
    rank_biserial,
    relative_gain,
    wilcoxon_signed_rank,
    win_tie_loss,
)

# Multiples of 1/8: sums and differences are exact, so ties are ties in every implementation.
eighths = st.integers(-80, 80).map(lambda k: k / 8)
samples = st.lists(eighths, min_size=2, max_size=12)


def test_relative_gain_is_the_papers():
    # A row of the paper's seed study: MSE 1.2658 -> 1.0658 is printed as 15.8 percent.
    assert round(relative_gain(1.2658, 1.0658), 1) == 15.8
    assert relative_gain(50.0, 60.0, higher_is_better=True) == pytest.approx(20.0)
    assert relative_gain(50.0, 60.0) == pytest.approx(-20.0)
    assert relative_gain(0.0, 1.0) is None


def test_summary_uses_the_sample_deviation():
    result = mean_and_deviation([1.0, 2.0, 4.0])
    assert (result.n, result.mean) == (3, pytest.approx(7 / 3))
    assert result.std == pytest.approx(math.sqrt(7 / 3))
    alone = mean_and_deviation([5.0])
    assert (alone.n, alone.mean, alone.std) == (1, 5.0, None)
    assert alone.reason is not None


def test_wins_ties_losses():
    result = win_tie_loss([1.0, 1.0, 1.0, 2.0], [0.9, 1.0, 1.1, 2.0 + 1e-12])
    assert (result.n, result.wins, result.ties, result.losses) == (4, 1, 2, 1)
    assert win_tie_loss([0.5], [0.6], higher_is_better=True).wins == 1
    loose = win_tie_loss([100.0, 100.0], [99.5, 98.0], tolerance=0.01)
    assert (loose.wins, loose.ties, loose.tolerance) == (1, 1, 0.01)


@settings(max_examples=60, deadline=None)
@given(samples, samples)
def test_better_for_an_error_is_worse_for_a_score(raw, treated):
    size = min(len(raw), len(treated))
    raw, treated = raw[:size], treated[:size]
    error = win_tie_loss(raw, treated)
    score = win_tie_loss(raw, treated, higher_is_better=True)
    assert (error.wins, error.ties, error.losses) == (score.losses, score.ties, score.wins)
    assert error.wins + error.ties + error.losses == error.n == size
    assert improvements(raw, treated).tolist() == (-improvements(treated, raw)).tolist()


@settings(max_examples=60, deadline=None)
@given(samples)
def test_t_test_agrees_with_scipy(values):
    assume(np.ptp(values) > 0)
    result = paired_t_test(values)
    expected = stats.ttest_1samp(values, 0.0)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.n == len(values)


def enumerated_p_value(values):
    """Share of all sign patterns whose smaller rank sum is as small as the one observed."""
    ranks = stats.rankdata(np.abs(values))
    signs = np.array(list(product([0, 1], repeat=len(ranks))))
    positive = signs @ ranks
    smaller = np.minimum(positive, ranks.sum() - positive)
    observed = ranks[np.array(values) > 0].sum()
    return np.mean(smaller <= min(observed, ranks.sum() - observed))


@settings(max_examples=60, deadline=None)
@given(st.lists(eighths.filter(bool), min_size=2, max_size=9))
def test_wilcoxon_is_exact_also_with_ties(values):
    assert wilcoxon_signed_rank(values).p_value == pytest.approx(enumerated_p_value(values))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=50, unique=True), st.randoms())
def test_wilcoxon_agrees_with_scipy_without_ties(magnitudes, random):
    values = [float(m * random.choice([-1, 1])) for m in magnitudes]
    expected = stats.wilcoxon(values)
    result = wilcoxon_signed_rank(values)
    assert result.statistic == expected.statistic
    assert result.p_value == pytest.approx(expected.pvalue)


def test_wilcoxon_approximates_above_fifty_and_drops_zeros():
    values = np.round(np.random.default_rng(0).normal(0.1, 1, size=192), 1)
    result = wilcoxon_signed_rank(values)
    expected = stats.wilcoxon(values[values != 0])
    assert result.p_value == pytest.approx(expected.pvalue)
    assert (result.n, result.zeros) == (192, int((values == 0).sum()))
    assert result.zeros > 0


def test_five_pairs_cannot_be_significant_at_five_percent():
    assert wilcoxon_signed_rank([1.0, 2.0, 3.0, 4.0, 5.0]).p_value == 0.0625


def test_arithmetic_noise_does_not_break_ties():
    assert 0.3 - 0.2 != 0.2 - 0.1
    noisy = [0.3 - 0.2, -(0.2 - 0.1), 0.5]
    assert wilcoxon_signed_rank(noisy) == wilcoxon_signed_rank([0.1, -0.1, 0.5])


def test_rank_biserial_hand_worked():
    # Ranks 1, 2, 3 for the magnitudes; the middle one speaks against.
    assert rank_biserial([1.0, -2.0, 3.0]).value == pytest.approx((1 - 2 + 3) / 6)
    assert rank_biserial([1.0, 2.0]).value == 1.0
    assert rank_biserial([0.0, -2.0]).value == -1.0


@settings(max_examples=60, deadline=None)
@given(samples, st.randoms())
def test_sign_symmetry_and_permutation_invariance(values, random):
    shuffled = random.sample(values, len(values))
    negated = [-value for value in values]
    assert wilcoxon_signed_rank(shuffled) == wilcoxon_signed_rank(values)
    assert wilcoxon_signed_rank(negated) == wilcoxon_signed_rank(values)
    assert bootstrap_mean(shuffled, resamples=50) == bootstrap_mean(values, resamples=50)
    effect, opposite = rank_biserial(values).value, rank_biserial(negated).value
    assert opposite == (None if effect is None else pytest.approx(-effect))
    t, mixed, minus = paired_t_test(values), paired_t_test(shuffled), paired_t_test(negated)
    if t.p_value is None:
        assert t.reason == mixed.reason == minus.reason
    else:
        assert mixed.p_value == pytest.approx(t.p_value)
        assert minus.p_value == pytest.approx(t.p_value)
        assert minus.statistic == pytest.approx(-t.statistic)


def test_bootstrap_agrees_with_scipy_and_its_seed():
    values = np.random.default_rng(1).normal(2.0, 3.0, size=40)
    ours = bootstrap_mean(values, seed=3)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=9)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.06)
    assert ours == bootstrap_mean(values, seed=3)
    assert ours != bootstrap_mean(values, seed=4)
    assert ours.low < ours.mean < ours.high
    narrow = bootstrap_mean(values, seed=3, confidence=0.5)
    assert ours.low < narrow.low < narrow.high < ours.high


def test_holm_hand_worked():
    # 0.01 * 4, then 0.02 * 3, 0.03 * 2 raised to what came before, 0.04 * 1 likewise.
    assert holm([0.04, 0.01, 0.03, 0.02]).p_values == pytest.approx((0.06, 0.04, 0.06, 0.06))
    result = holm([0.01, None, 0.5])
    assert result.n == 2
    assert result.p_values == (0.02, None, 0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.2))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, alpha):
    adjusted = holm(p_values).p_values
    rejected = set()
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        if (len(p_values) - rank) * p_values[index] > alpha:
            break
        rejected.add(int(index))
    assert {index for index, p in enumerate(adjusted) if p <= alpha} == rejected
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))


def test_comparison_of_five_seeds():
    raw, treated = [1.0, 1.2, 1.1, 0.9, 1.3], [0.8, 1.0, 1.1, 1.0, 1.0]
    result = compare_pairs(raw, treated, seed=1)
    assert result.n == 5
    assert result.gain_of_means == pytest.approx(100 * (5.5 - 4.9) / 5.5)
    gains = [100 * (r - t) / r for r, t in zip(raw, treated, strict=True)]
    assert result.mean_gain == pytest.approx(np.mean(gains))
    assert result.gain_interval.low <= result.mean_gain <= result.gain_interval.high
    assert (result.win_tie_loss.wins, result.win_tie_loss.ties) == (3, 1)
    assert result.t_test.p_value == pytest.approx(stats.ttest_rel(raw, treated).pvalue)
    assert result.wilcoxon.zeros == 1
    assert json.loads(json.dumps(result.to_dict()))["n"] == 5
    score = compare_pairs(treated, raw, higher_is_better=True)
    assert score.t_test == result.t_test
    assert score.effect_size == result.effect_size


def test_what_cannot_be_said_has_a_reason():
    one = compare_pairs([1.0], [0.9])
    for part in (one.t_test, one.wilcoxon, one.raw, one.gain_interval):
        assert part.n == 1
        assert part.reason is not None
    assert one.mean_gain == pytest.approx(10.0)

    same = compare_pairs([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert (same.t_test.p_value, same.wilcoxon.p_value, same.effect_size.value) == (None,) * 3
    for part in (same.t_test, same.wilcoxon, same.effect_size):
        assert "zero" in part.reason
    assert (same.gain_interval.low, same.gain_interval.high) == (0.0, 0.0)

    shifted = paired_t_test([0.1, 0.1, 0.1])
    assert shifted.p_value is None
    assert "equal" in shifted.reason

    nothing = compare_pairs([0.0, 1.0], [0.0, 1.0], higher_is_better=True)
    assert (nothing.mean_gain, nothing.gain_interval) == (None, None)
    assert "raw value is 0" in nothing.reason


def test_bad_input_is_refused():
    with pytest.raises(ArgumentError, match="raw holds nan at position 1"):
        compare_pairs([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="2 raw and 1 treated"):
        improvements([1.0, 2.0], [1.0])
    with pytest.raises(ArgumentError, match="non-empty"):
        mean_and_deviation([])
    with pytest.raises(ArgumentError, match="tolerance"):
        win_tie_loss([1.0], [1.0], tolerance=-1)
    with pytest.raises(ArgumentError, match="confidence"):
        bootstrap_mean([1.0, 2.0], confidence=1.0)
    with pytest.raises(ArgumentError, match="resamples"):
        bootstrap_mean([1.0, 2.0], resamples=0)
    with pytest.raises(ArgumentError, match=r"p-value 1\.5 at position 1"):
        holm([0.1, 1.5])
