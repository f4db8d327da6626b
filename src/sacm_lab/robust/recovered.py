"""Recovered share: how much of what broken training data cost a strategy wins back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sacm.experiments.grid_points import Key
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import value_of
from sacm.experiments.statistics import compare_pairs, holm
from sacm.metrics.catalogue import metric as known_metric
from sacm.metrics.intervals import Record
from sacm_lab.robust.protocols import GUARD_ON_CLEAN, ON_CLEAN

_DRAWS = 2000
CLEAR_LOSS = 0.02
"""Share that broken data must cost for a recovered share to say something."""
WIDEST = 2.0
"""Width of its interval up to which it says something; 1 is all that was lost."""
_MEASURES = (
    "mse",
    "mae",
    "mean_fault_mse",
    "accuracy",
    "accuracy_last_ten",
    "vus_pr",
    "auc_pr",
)


@dataclass(frozen=True)
class Recovered(Record):
    """One strategy in one place: (raw - strategy) / (raw - raw on clean), of means over n seeds.

    Attributes:
        keys: The place; empty for all places together. Their share is what is won in all of them
            over what is lost in all of them, so a place that loses little counts for little.
        metric: What was measured.
        strategy: The name of the strategy.
        n: Number of seeds, or of places for all together.
        lost: How much worse raw is than on clean data, as a share of its value there.
        share: The recovered share; None where nothing was lost.
        low: Lower end of the 95 % interval, bootstrapped over seeds (over places, for all).
        high: Upper end of it.
        p_value: Of the paired t-test of raw against the strategy over seeds.
        adjusted_p_value: The same after Holm's correction.
        won: How much better the strategy is than raw, in the units of `lost`.
    """

    keys: dict[str, Key]
    metric: str
    strategy: str
    n: int
    lost: float | None
    share: float | None
    low: float | None
    high: float | None
    p_value: float | None = None
    adjusted_p_value: float | None = None
    won: float | None = None

    @property
    def clear_share(self) -> float | None:
        """The recovered share where enough was lost for it to say something; None elsewhere."""
        if self.lost is None or self.lost <= CLEAR_LOSS:
            return None
        wide = self.low is not None and self.high is not None and self.high - self.low > WIDEST
        return None if wide else self.share


def recovered_shares(findings: Findings) -> list[Recovered]:
    """Compute the recovered share of every strategy.

    Args:
        findings: Results of a protocol whose runs were also made on clean data.

    Returns:
        For each metric: every strategy in every row, then every strategy over all rows.
    """
    places: dict[tuple[Key, ...], list[Group]] = {}
    for group in findings.groups:
        places.setdefault(tuple(group.keys[key] for key in findings.row_keys), []).append(group)
    known = (findings.baseline, ON_CLEAN, GUARD_ON_CLEAN)
    others = [name for name in findings.strategies if name not in known]
    found: list[Recovered] = []
    for metric in (name for name in _MEASURES if name in findings.metrics):
        rows = [
            _in_place(dict(zip(findings.row_keys, at, strict=True)), groups, metric, name)
            for at, groups in places.items()
            for name in others
        ]
        adjusted = holm([row.p_value for row in rows]).p_values
        rows = [replace(row, adjusted_p_value=p) for row, p in zip(rows, adjusted, strict=True)]
        found += rows
        found += [
            _together(metric, name, [r for r in rows if r.strategy == name]) for name in others
        ]
    return found


def _in_place(
    keys: dict[str, Key], groups: Sequence[Group], metric: str, strategy: str
) -> Recovered:
    table = [
        [value_of(group, name, metric) for name in ("raw", ON_CLEAN, strategy)] for group in groups
    ]
    whole = np.array([line for line in table if None not in line], dtype=float).reshape(-1, 3)
    if not len(whole):
        return Recovered(keys, metric, strategy, 0, None, None, None, None)
    if known_metric(metric).higher_is_better:
        whole = -whole
    raw, clean, own = whole.T
    scale = max(abs(clean.mean()), 1e-12)
    lost, won = float((raw - clean).mean() / scale), float((raw - own).mean() / scale)
    p_value = None
    if len(whole) > 1 and (raw != own).any():
        p_value = compare_pairs(raw.tolist(), own.tolist(), higher_is_better=False).t_test.p_value
    low, high = _interval(whole) if len(whole) > 1 and lost > 0 else (None, None)
    share = won / lost if lost > 0 else None
    return Recovered(keys, metric, strategy, len(whole), lost, share, low, high, p_value, won=won)


def _interval(whole: np.ndarray) -> tuple[float | None, float | None]:
    """Quantiles of the share over resampled seeds; draws in which nothing was lost do not count."""
    random = np.random.default_rng(0)
    drawn = whole[random.integers(0, len(whole), (_DRAWS, len(whole)))].mean(axis=1)
    raw, clean, own = drawn.T
    shares = ((raw - own) / np.where(raw > clean, raw - clean, np.nan))[raw > clean]
    if not len(shares):
        return None, None
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def _together(metric: str, strategy: str, rows: Sequence[Recovered]) -> Recovered:
    """What is won in all places over what is lost in all of them."""
    both = [(row.lost, row.won) for row in rows if row.lost is not None and row.won is not None]
    if not both:
        return Recovered({}, metric, strategy, 0, None, None, None, None)
    places = np.array(both)
    lost, won = (float(one) for one in places.mean(axis=0))
    if lost <= 0:
        return Recovered({}, metric, strategy, len(both), lost, None, None, None, won=won)
    low = high = None
    if len(both) > 1:
        random = np.random.default_rng(0)
        drawn = places[random.integers(0, len(both), (_DRAWS, len(both)))].mean(axis=1)
        shares = drawn[drawn[:, 0] > 0, 1] / drawn[drawn[:, 0] > 0, 0]
        low, high = (float(end) for end in np.quantile(shares, [0.025, 0.975]))
    return Recovered({}, metric, strategy, len(both), lost, won / lost, low, high, won=won)
