"""A sensor that is stuck but for a little noise: far calmer than the channel ever is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, find_stretches, join_parts
from sacm.quality.series.residuals import neighbour_residual
from sacm.quality.series.weibull_cut import weibull_cut

_REACH = 6
_LEVEL = 1e-4
_FEWEST_ROWS = 2000
_SIDE = 16
_EDGE = 1
_LIVELIER = 1.5


@dataclass(frozen=True)
class LullModel:
    """How calm a channel is by nature, over thirteen rows.

    Attributes:
        step: Largest change from row to row that is too small to be natural.
        residual: Largest residual that is too small to be natural.
    """

    step: float
    residual: float


def fit_lulls(parts: list[Floats], good: list[Bools], sensitivity: float = 1.0) -> LullModel:
    """Learn how calm one channel is by nature.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that may be used, of each piece.
        sensitivity: Above 1 lets less calm stretches count.

    Returns:
        The model; with fewer than 2,000 rows nothing counts as too calm.
    """
    if sum(map(len, parts)) < _FEWEST_ROWS:
        return LullModel(0.0, 0.0)
    measured = [_liveliness(*one) for one in zip(parts, good, strict=True)]
    cuts = []
    for column in range(2):
        pooled = join_parts([one[column] for one in measured])
        pooled = pooled[np.isfinite(pooled) & (pooled > 0)]
        # A small value is a large inverse, so the same cut as for large values serves.
        cut = weibull_cut(1 / pooled, _LEVEL) if len(pooled) else np.inf
        cuts.append(sensitivity / cut)
    return LullModel(*cuts)


def find_lulls(values: Floats, good: Bools, model: LullModel) -> Bools:
    """Rows of one piece where changes and residuals are both too small to be natural.

    A smooth series is calm in its changes at a peak and in its residuals on a slope, but never
    in both at once.

    Args:
        values: Values `[T]`.
        good: Values that may be flagged `[T]`.
        model: How calm the channel is by nature.
    """
    from scipy.ndimage import maximum_filter1d

    steps, residuals = _liveliness(values, good)
    calm = (steps < model.step) & (residuals < model.residual)
    if not calm.any():
        return calm
    calm = good & (maximum_filter1d(calm.astype(np.uint8), 2 * _REACH - 1) > 0)
    for start, stop in zip(*find_stretches(calm), strict=True):
        if not _is_abrupt(values, good, start, stop):
            calm[start:stop] = False
    return calm


def _is_abrupt(values: Floats, good: Bools, start: int, stop: int) -> bool:
    """Whether both sides are livelier at once: a calm season comes and goes gradually.

    At the ends of a piece that cannot be seen, and a recording often begins or ends at rest.
    """
    inside = float(np.abs(np.diff(values[start:stop])).max())
    for first, last in (
        (start - _EDGE - _SIDE, start - _EDGE),
        (stop + _EDGE, stop + _EDGE + _SIDE),
    ):
        side = slice(max(first, 0), max(last, 0))
        steps = np.abs(np.diff(values[side][good[side]]))
        if len(steps) >= _REACH and np.median(steps) < _LIVELIER * inside:
            return False
        if len(values[side]) < _REACH:
            return False
    return True


def _liveliness(values: Floats, good: Bools) -> tuple[Floats, Floats]:
    """Largest change and largest residual within six rows; infinite near bad values."""
    from scipy.ndimage import maximum_filter1d

    if len(values) < 2 * _REACH + 1:
        return np.full(len(values), np.inf), np.full(len(values), np.inf)
    known = np.where(good, values, 0.0)
    steps = np.abs(np.diff(known, prepend=known[0]))
    residuals = np.abs(neighbour_residual(known))
    bad = ~good
    # A value next to a bad one has no known step, and residuals reach two rows further.
    steps[bad] = np.inf
    steps[1:][bad[:-1]] = np.inf
    width = 2 * _REACH + 1
    wide = maximum_filter1d(steps, width)
    residuals[~np.isfinite(steps)] = np.inf
    return wide, maximum_filter1d(residuals, width - 4)
