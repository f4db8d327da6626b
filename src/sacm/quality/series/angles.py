"""Angles in degrees: they jump by 360 where they wrap around, and that is no fault."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats

_HALF_TURN = 180.0
_WRAPS = 0.003


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
    return any(
        bottom <= low < bottom + 60
        and bottom + 300 < high <= bottom + 360
        and np.mean(np.abs(finite - bottom - _HALF_TURN) > _HALF_TURN) < 0.15
        and np.mean(steps > _HALF_TURN) > _WRAPS
        for bottom in (0.0, -_HALF_TURN)
    )
