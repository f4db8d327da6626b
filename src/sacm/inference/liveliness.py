"""How far a window moves: lively windows are harder to forecast, and their intervals wider.

Residuals are divided by a factor of their window before they are ranked, and intervals are
multiplied by that of the window they start from: locally weighted conformal prediction (Lei et al.,
"Distribution-free predictive inference for regression", JASA 2018). The factor is known before the
future is, so the promise of conformal prediction stays what it was.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from sacm.inference.trained import Array

_STEADY = 0.1  # of the usual movement, added to all: windows at rest keep some width
_MOST = (
    4.0  # factors lie between its inverse and it: a burst or a rest is no measure of all to come
)


def window_moves(x: Tensor, horizon: int, repairs: Tensor | None = None) -> Array:
    """Mean absolute change over as many steps as are forecast, within each window.

    Args:
        x: Scaled windows `[B, L, C]`.
        horizon: Steps to forecast; of short windows at most half of their length counts.
        repairs: Above 0 where a value was repaired `[B, L, C]`; such values do not count.

    Returns:
        `[B, C]`, NaN where nothing counts.
    """
    lag = max(1, min(horizon, x.shape[1] // 2))
    moves = (x[:, lag:] - x[:, :-lag]).abs()
    if repairs is not None:
        touched = (repairs[:, lag:] > 0) | (repairs[:, :-lag] > 0)
        moves = moves.masked_fill(touched.to(moves.device), float("nan"))
    found: Array = moves.nanmean(dim=1).cpu().numpy().astype(np.float64)
    return found


def usual_moves(moves: Array) -> Array:
    """The movement `[C]` of a usual window, from that of many `[N, C]`; 0 where none is known."""
    known = np.isfinite(moves).any(axis=0)
    found = np.zeros(moves.shape[1])
    found[known] = np.nanmedian(moves[:, known], axis=0)
    return found


def width_factors(moves: Array, usual: Array) -> Array:
    """How much wider than usual intervals are after windows that move so far.

    Args:
        moves: Of S windows `[S, C]`.
        usual: Of a usual window `[C]`.

    Returns:
        `[S, C]`, 1 where either is not known.
    """
    safe = np.where(usual > 0, usual, 1.0)
    factor = (moves / safe + _STEADY) / (1 + _STEADY)
    factor = np.clip(factor, 1 / _MOST, _MOST)
    found: Array = np.where((usual > 0) & np.isfinite(moves), factor, 1.0)
    return found
