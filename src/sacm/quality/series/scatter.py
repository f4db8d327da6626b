"""Wild values on many single steps, more than what is called an isolated spike allows.

Where every third value is wild, the wild ones decide what looks usual: the size of residuals, their
tail, their bursts. They are told from a lively channel by three marks that a nature of peaks lacks:
they are much larger than the rest, as often above as below, and independent of each other in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, apply_to_good, fill_linear
from sacm.quality.series.running import running_median

_ROUNDS = 6
_START = 2.0  # times the cut in the first round, in which wild neighbours still guess
_CUT = 4.0
_FEWEST = 100
_AROUND = 31
_NORMAL = 0.6745  # median size of a residual over its deviation, of a normal distribution
_LOW = 0.35
"""Quantile of residuals that healthy values decide, also if every third value is wild."""
_FAR = 0.03
"""Share of the values that must lie at twice the cut or beyond."""
_LEAST, _MOST = 0.12, 0.5
"""Shares of wild values between which this test is needed and possible: fewer are found as spikes,
and with fewer mistakes."""
_SIDE = 0.3
"""Smallest share of the wild values on either side."""
_LAGS = (1, 2, 3)
_TOGETHER = 1.5
"""How much more often than by chance two wild values may lie one, two or three steps apart."""


@dataclass(frozen=True)
class ScatterModel:
    """A channel with wild values on many single steps.

    Attributes:
        size: Deviation of the residuals of healthy values.
        share: Share of the training values that are wild.
        cut: Residual over `size` from which a value is wild.
    """

    size: float
    share: float
    cut: float


def fit_scatter(
    parts: list[Floats], good: list[Bools], sensitivity: float = 1.0
) -> ScatterModel | None:
    """Learn how large healthy residuals are, if there are wild values on many single steps.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that are not missing, codes or stuck, of each piece.
        sensitivity: Above 1 lowers the cut.

    Returns:
        The model; None where nothing speaks for such values.
    """
    long = [i for i, ok in enumerate(good) if ok.sum() >= _FEWEST]
    if not long:
        return None
    cut = _CUT / sensitivity
    columns = [(fill_linear(parts[i], good[i]), good[i]) for i in long]
    first = [np.abs(step_residual(values, ok)) for values, ok in columns]
    known = np.concatenate([sizes[ok] for sizes, (_, ok) in zip(first, columns, strict=True)])
    size = float(np.quantile(known, _LOW)) / 0.4538  # of a normal distribution
    if not size > 0 or np.mean(known > cut * size) < _FAR:
        return None
    wild = [ok & (sizes > cut * size) for sizes, (_, ok) in zip(first, columns, strict=True)]
    for _ in range(_ROUNDS):
        kept = [ok & ~out for out, (_, ok) in zip(wild, columns, strict=True)]
        if min(map(np.count_nonzero, kept)) < _FEWEST // 2:
            return None
        residuals = [
            step_residual(values, own) for (values, _), own in zip(columns, kept, strict=True)
        ]
        healthy = np.concatenate([r[own] for r, own in zip(residuals, kept, strict=True)])
        size = float(np.median(np.abs(healthy))) / _NORMAL
        if not size > 0:
            return None
        wild = [
            ok & (np.abs(r) > cut * local_size(r, own, size))
            for r, own, (_, ok) in zip(residuals, kept, columns, strict=True)
        ]
    model = ScatterModel(size, float(np.mean(np.concatenate(wild))), cut)
    return model if _is_scatter(residuals, wild, model) else None


def find_scattered(values: Floats, good: Bools, model: ScatterModel) -> Bools:
    """Find the wild values of one piece.

    Args:
        values: Values `[T]`.
        good: Values that may be flagged `[T]`.
        model: What was learnt of the channel.

    Returns:
        Mask `[T]`; empty where wild values are much rarer than in training, because then the
        largest healthy ones would be taken for them.
    """
    none = np.zeros(len(values), bool)
    if good.sum() < _FEWEST:
        return none
    values = fill_linear(values, good)
    wild = good & (np.abs(step_residual(values, good)) > _START * model.cut * model.size)
    for _ in range(_ROUNDS):
        kept = good & ~wild
        if kept.sum() < _FEWEST // 2:
            return none
        residual = step_residual(values, kept)
        wild = good & (np.abs(residual) > model.cut * local_size(residual, kept, model.size))
    return wild if wild.sum() >= 0.5 * model.share * good.sum() else none


def step_residual(values: Floats, kept: Bools) -> Floats:
    """How far every value is from what the two kept ones on either side say.

    The nearer of two guesses counts: the median of the four and the line between the inner two, so
    that neither a bend nor a wild neighbour accuses a value.

    Args:
        values: Values `[T]`.
        kept: Values to guess from `[T]`; none guesses itself.
    """
    rows, known = np.arange(len(values)), np.flatnonzero(kept)
    before = np.searchsorted(known, rows, side="left")
    after = np.searchsorted(known, rows, side="right")
    near = np.stack([before - 2, before - 1, after, after + 1])
    places = known[np.clip(near, 0, len(known) - 1)]
    around = values[places]
    median = (around.sum(axis=0) - around.max(axis=0) - around.min(axis=0)) / 2
    left, right = places[1], places[2]
    way = np.where(right > left, (rows - left) / np.maximum(right - left, 1), 0.5)
    line = around[1] * (1 - way) + around[2] * way
    by_median, by_line = values - median, values - line
    return np.where(np.abs(by_median) < np.abs(by_line), by_median, by_line)


def local_size(residual: Floats, kept: Bools, size: float) -> Floats:
    """Deviation of residuals around each row, by those of kept values; not below `size`."""
    sizes = apply_to_good(np.abs(residual), kept, lambda own: running_median(own, _AROUND))
    return np.maximum(sizes / _NORMAL, size)


def _is_scatter(residuals: list[Floats], wild: list[Bools], model: ScatterModel) -> bool:
    """Whether wild values are far out, on both sides, and independent of each other."""
    large = np.concatenate([r[out] for r, out in zip(residuals, wild, strict=True)])
    count = sum(map(len, wild))
    far = np.count_nonzero(np.abs(large) > 2 * model.cut * model.size) / count
    if far < _FAR or not _LEAST <= model.share <= _MOST:
        return False
    above = float(np.mean(large > 0))
    if not _SIDE <= above <= 1 - _SIDE:
        return False
    for lag in _LAGS:
        both = sum(np.count_nonzero(out[lag:] & out[:-lag]) for out in wild)
        if both / count > _TOGETHER * model.share**2:
            return False
    return True
