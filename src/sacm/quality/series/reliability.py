"""How far each value can be trusted, between 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from sacm.quality.series.arrays import Floats

_FALL = 2.0


def reliability(flags: Any, uncertainty: Any, scale: Any) -> Floats:
    """Trust in every value after repair.

    Healthy values get 1. Repaired ones get `exp(-2 u)`, where u is the deviation to expect of
    the repair in deviations of the channel: 0.82 at a tenth of a deviation, 0.14 at one.

    Args:
        flags: Flags `[T, C]`, 0 for healthy values.
        uncertainty: Deviation to expect of the repaired values `[T, C]`, in units of the data.
        scale: Deviation of each channel `[C]`; 0 for a constant one.

    Returns:
        Reliability `[T, C]` in [0, 1].
    """
    unsure = np.asarray(uncertainty, dtype=np.float64)
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), unsure.shape)
    relative = np.divide(unsure, scales, out=np.where(unsure > 0, np.inf, 0.0), where=scales > 0)
    return np.where(np.asarray(flags) == 0, 1.0, np.exp(-_FALL * relative))
