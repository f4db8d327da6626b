"""Several strategies on the same problems: average ranks, and who cannot be told from whom.

A *clique* is a maximal stretch of the rank order in which no two strategies differ significantly:
the bars of a critical-difference diagram (Demšar, JMLR 2006). Bars cannot show a pair that is alike
across one that differs; the p-values of all pairs are therefore part of the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sacm.errors import ArgumentError
from sacm.experiments.statistics import holm, improvements, wilcoxon_signed_rank
from sacm.metrics.intervals import Record

Method = Literal["wilcoxon-holm", "nemenyi"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FriedmanTest(Record):
    """Do k strategies differ at all over n problems?"""

    n: int
    strategies: int
    statistic: float | None
    p_value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class PairDifference(Record):
    """Two strategies over n problems; `p_value` is Holm-adjusted (None: Nemenyi, or all equal)."""

    n: int
    better: str
    worse: str
    p_value: float | None
    significant: bool


@dataclass(frozen=True)
class CriticalDifference(Record):
    """Strategies in rank order (best first) over n problems, and the groups not told apart.

    `critical_difference` is the rank distance that matters, for Nemenyi only.
    """

    n: int
    names: tuple[str, ...]
    average_ranks: tuple[float, ...]
    cliques: tuple[tuple[str, ...], ...]
    pairs: tuple[PairDifference, ...]
    friedman: FriedmanTest
    method: Method
    alpha: float
    critical_difference: float | None


def average_ranks(table: ArrayLike, *, higher_is_better: bool = False) -> Floats:
    """Mean rank of each strategy [k] in a table [n problems, k strategies]; 1 is best."""
    means: Floats = _ranks(_checked(table), higher_is_better=higher_is_better).mean(axis=0)
    return means


def friedman_test(table: ArrayLike) -> FriedmanTest:
    """Friedman's chi-square test with tie correction over a table [n problems, k strategies]."""
    ranks = _ranks(_checked(table), higher_is_better=False)
    n, strategies = ranks.shape
    if strategies < 3:
        reason = "Friedman's test needs at least three strategies"
    elif n < 2:
        reason = "Friedman's test needs at least two problems"
    elif bool((ranks == ranks[:, :1]).all()):
        reason = "all strategies are equal on every problem"
    else:
        statistic, p_value = stats.friedmanchisquare(*ranks.T)
        return FriedmanTest(n, strategies, float(statistic), float(p_value))
    return FriedmanTest(n, strategies, None, None, reason)


def critical_difference(
    table: ArrayLike,
    names: Sequence[str],
    *,
    higher_is_better: bool = False,
    alpha: float = 0.05,
    method: Method = "wilcoxon-holm",
) -> CriticalDifference:
    """Rank strategies over problems, [n, k]; when Friedman finds nothing, all form one clique."""
    values = _checked(table)
    n, strategies = values.shape
    if len(names) != strategies or len(set(names)) != strategies:
        raise ArgumentError(
            f"{strategies} different names are needed, one per column, got {list(names)}"
        )
    if method not in get_args(Method):
        raise ArgumentError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    if not 0 < alpha < 1:
        raise ArgumentError(f"alpha must lie between 0 and 1, got {alpha}")
    ranks = average_ranks(values, higher_is_better=higher_is_better)
    order = np.argsort(ranks, kind="stable")
    ranks, ordered = ranks[order], [names[index] for index in order]
    friedman = friedman_test(values)
    distance = nemenyi_distance(strategies, n=n, alpha=alpha) if method == "nemenyi" else None
    pairs = _test_pairs(
        values[:, order] if higher_is_better else -values[:, order],
        ordered,
        ranks,
        distance=distance,
        alpha=alpha,
        settled=friedman.p_value is not None and friedman.p_value >= alpha,
    )
    apart = {(pair.better, pair.worse) for pair in pairs if pair.significant}
    return CriticalDifference(
        n=n,
        names=tuple(ordered),
        average_ranks=tuple(ranks.tolist()),
        cliques=_cliques(ordered, apart),
        pairs=pairs,
        friedman=friedman,
        method=method,
        alpha=alpha,
        critical_difference=distance,
    )


def nemenyi_distance(strategies: int, *, n: int, alpha: float = 0.05) -> float:
    """Smallest difference of average ranks that Nemenyi's test calls significant."""
    quantile = float(stats.studentized_range.ppf(1 - alpha, strategies, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(strategies * (strategies + 1) / (6 * n))


def _test_pairs(
    scores: Floats,
    ordered: list[str],
    ranks: Floats,
    *,
    distance: float | None,
    alpha: float,
    settled: bool,
) -> tuple[PairDifference, ...]:
    """All pairs in rank order; by rank distance if one is given, otherwise Wilcoxon with Holm."""
    pairs = list(combinations(range(len(ordered)), 2))
    p_values: tuple[float | None, ...] = (None,) * len(pairs)
    if distance is None:
        p_values = holm(
            [
                wilcoxon_signed_rank(
                    improvements(scores[:, worse], scores[:, better], higher_is_better=True)
                ).p_value
                for better, worse in pairs
            ]
        ).p_values
    results = []
    for (better, worse), p_value in zip(pairs, p_values, strict=True):
        gap = float(ranks[worse] - ranks[better])
        differs = gap >= distance if distance else p_value is not None and p_value < alpha
        results.append(
            PairDifference(
                n=len(scores),
                better=ordered[better],
                worse=ordered[worse],
                p_value=p_value,
                significant=differs and not settled,
            )
        )
    return tuple(results)


def _cliques(ordered: list[str], apart: set[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Longest stretches of two or more names with no differing pair, none inside another."""
    cliques: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(ordered)):
        stop = start + 1
        while stop < len(ordered) and not any(
            (name, ordered[stop]) in apart for name in ordered[start:stop]
        ):
            stop += 1
        if stop - start > 1 and stop > reached:
            cliques.append(tuple(ordered[start:stop]))
            reached = stop
    return tuple(cliques)


def _ranks(values: Floats, *, higher_is_better: bool) -> Floats:
    """Ranks within each row; rounding makes values that differ by arithmetic noise tie."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    rounded = np.round(values / np.where(largest > 0, largest, 1.0), 12)
    ranks: Floats = stats.rankdata(-rounded if higher_is_better else rounded, axis=1)
    return ranks


def _checked(table: ArrayLike) -> Floats:
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ArgumentError(
            "a table [problems, strategies] with at least two strategies is needed, got shape"
            f" {values.shape}"
        )
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise ArgumentError(
            f"row {row}, column {column} holds {values[row, column]};"
            " leave out problems on which a strategy failed"
        )
    return values
