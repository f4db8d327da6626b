"""Angles in degrees: they jump by 360 where they wrap around, and that is no fault."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats

_HALF_TURN = 180.0
_WRAPS = 0.003
_SMALL = 130.0
_OUTSIDE = 0.01


def is_angle(parts: list[Floats]) -> bool:
    """Whether a channel fills one turn of 360 degrees and often jumps by more than half of it.

    Args:
        parts: Values `[T]` of each piece, NaN where missing.
    """
    finite = np.concatenate([part[np.isfinite(part)] for part in parts])
    steps = np.concatenate([np.abs(np.diff(part)) for part in parts])
    steps = steps[np.isfinite(steps)]
    if not len(steps):
        return False
    low, high = np.quantile(finite, [0.02, 0.98])
    turns = steps[steps > _HALF_TURN]
    # A wrap is a small step the other way round; large steps of any size are something else.
    if len(turns) <= _WRAPS * len(steps) or np.median(2 * _HALF_TURN - turns) > _SMALL:
        return False
    return any(
        bottom <= low < bottom + 60
        and bottom + 300 < high <= bottom + 360
        and np.mean(np.abs(finite - bottom - _HALF_TURN) > _HALF_TURN) < _OUTSIDE
        for bottom in (0.0, -_HALF_TURN)
    )
