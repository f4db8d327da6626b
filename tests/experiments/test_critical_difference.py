from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from aeon.benchmarking.stats import check_friedman, nemenyi_test
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from sacm.errors import ArgumentError
from sacm.experiments.critical_difference import (
    average_ranks,
    critical_difference,
    friedman_test,
    nemenyi_distance,
)
from sacm.experiments.statistics import holm, wilcoxon_signed_rank

NAMES = ["a", "b", "c", "d", "e"]


def table(seed, *, problems=20, step=0.5):
    """Multiples of 1/8, so that differences are exact; later columns are worse by `step`."""
    noise = np.random.default_rng(seed).normal(size=(problems, 5))
    return np.round(8 * noise) / 8 + step * np.arange(5)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=2, max_size=10).map(
        lambda rows: np.array(rows, dtype=float)
    )
)
def test_friedman_and_ranks_agree_with_aeon_and_scipy(values):
    assume((values != values[:, :1]).any())
    ranks = stats.rankdata(values, axis=1)
    assert average_ranks(values) == pytest.approx(ranks.mean(axis=0))
    assert average_ranks(values, higher_is_better=True) == pytest.approx(5 - ranks.mean(axis=0))
    result = friedman_test(values)
    assert result.p_value == pytest.approx(check_friedman(ranks))
    assert result.statistic == pytest.approx(stats.friedmanchisquare(*values.T).statistic)
    assert (result.n, result.strategies) == values.shape


@pytest.mark.parametrize(("strategies", "quantile"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_nemenyi_distance_has_the_tabulated_quantile(strategies, quantile):
    expected = quantile * np.sqrt(strategies * (strategies + 1) / (6 * 12))
    assert nemenyi_distance(strategies, n=12) == pytest.approx(expected, rel=3e-4)


@pytest.mark.parametrize("seed", range(4))
def test_nemenyi_pairs_agree_with_aeon(seed):
    values = table(seed)
    result = critical_difference(values, NAMES, method="nemenyi")
    assert result.friedman.p_value < 0.05
    alike = nemenyi_test(np.array(result.average_ranks), len(values), 0.05)
    for pair in result.pairs:
        i, j = result.names.index(pair.better), result.names.index(pair.worse)
        assert pair.significant == (not alike[i, j])
        assert pair.p_value is None


@pytest.mark.parametrize("seed", range(4))
def test_wilcoxon_pairs_are_two_sided_and_corrected_over_all_pairs(seed):
    values = table(seed)
    result = critical_difference(values, NAMES)
    ordered = values[:, [NAMES.index(name) for name in result.names]]
    expected = holm(
        [
            wilcoxon_signed_rank(ordered[:, j] - ordered[:, i]).p_value
            for i, j in combinations(range(5), 2)
        ]
    )
    assert [pair.p_value for pair in result.pairs] == pytest.approx(list(expected.p_values))
    assert [pair.significant for pair in result.pairs] == [p < 0.05 for p in expected.p_values]
    assert list(result.average_ranks) == sorted(result.average_ranks)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["wilcoxon-holm", "nemenyi"]))
def test_cliques_are_the_maximal_stretches_without_a_difference(seed, method):
    result = critical_difference(table(seed), NAMES, method=method)
    apart = {(pair.better, pair.worse) for pair in result.pairs if pair.significant}
    stretches = [result.names[i:j] for i, j in combinations(range(6), 2) if j - i > 1]
    alike = [s for s in stretches if not apart & set(combinations(s, 2))]
    maximal = {s for s in alike if not any(set(s) < set(other) for other in alike)}
    assert set(result.cliques) == maximal


def test_the_order_of_columns_does_not_matter():
    values = table(1)
    order = [3, 0, 4, 1, 2]
    first = critical_difference(values, NAMES)
    second = critical_difference(values[:, order], [NAMES[i] for i in order])
    assert first == second
    flipped = critical_difference(-values, NAMES, higher_is_better=True)
    assert flipped.pairs == first.pairs
    assert flipped.cliques == first.cliques


def test_nothing_is_called_different_when_friedman_finds_nothing():
    result = critical_difference(table(0, step=0.0), NAMES)
    assert result.friedman.p_value >= 0.05
    assert result.cliques == (result.names,)
    assert not any(pair.significant for pair in result.pairs)


def test_two_strategies_are_compared_without_friedman():
    generator = np.random.default_rng(0)
    first = generator.normal(size=12)
    result = critical_difference(np.stack([first, first - 1 - generator.random(12)], 1), ["x", "y"])
    assert result.friedman.p_value is None
    assert "three strategies" in result.friedman.reason
    assert result.names == ("y", "x")
    assert result.pairs[0].significant
    assert result.cliques == ()


def test_equal_strategies_are_one_clique():
    result = critical_difference(np.ones((6, 3)), ["x", "y", "z"])
    assert result.cliques == (("x", "y", "z"),)
    assert "equal" in result.friedman.reason
    assert [pair.p_value for pair in result.pairs] == [None] * 3
    assert json.loads(json.dumps(result.to_dict()))["n"] == 6


def test_bad_input_is_refused():
    with pytest.raises(ArgumentError, match="row 1, column 0 holds nan"):
        friedman_test([[1.0, 2.0, 3.0], [np.nan, 1.0, 2.0]])
    with pytest.raises(ArgumentError, match="at least two strategies"):
        average_ranks([[1.0], [2.0]])
    with pytest.raises(ArgumentError, match="different names"):
        critical_difference([[1.0, 2.0]], ["x", "x"])
    with pytest.raises(ArgumentError, match="method must be one of"):
        critical_difference([[1.0, 2.0]], ["x", "y"], method="tukey")
    with pytest.raises(ArgumentError, match="alpha"):
        critical_difference([[1.0, 2.0]], ["x", "y"], alpha=0.0)
    assert friedman_test([[1.0, 2.0, 3.0]]).reason == "Friedman's test needs at least two problems"
