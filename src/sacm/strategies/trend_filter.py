"""The l1 trend filter: a piecewise straight line that single outliers do not move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_ROUNDS = 60
_LARGEST, _SMALLEST = 1.0, 1e-5  # how far the absolute values are rounded off, first and last


def filter_trend(values: Array, penalty: float = 0.3) -> Array:
    """The trend `s` that minimises `sum |s - z| + penalty sum |s[t-1] - 2 s[t] + s[t+1]|`.

    Iteratively reweighted least squares: absolute values are rounded off, less in every round, and
    each round solves a system of five diagonals.

    Args:
        values: A series `z` `[T]`.
        penalty: What a bend costs.

    Returns:
        The trend `[T]`.

    Example:
        >>> import numpy as np
        >>> line = np.arange(20.0)
        >>> spiked = line.copy()
        >>> spiked[7] += 5
        >>> bool(np.abs(filter_trend(spiked) - line).max() < 1e-3)
        True
    """
    from scipy.linalg import solveh_banded

    trend = values.astype(np.float64)
    if len(values) < 3:
        return trend
    observed = trend.copy()
    for width in np.geomspace(_LARGEST, _SMALLEST, _ROUNDS):
        near = 1 / np.maximum(np.abs(trend - observed), width)
        bend = penalty / np.maximum(np.abs(np.diff(trend, 2)), width)
        trend = solveh_banded(_bands(near, bend), near * observed)
    return trend


def _bands(near: Array, bend: Array) -> Array:
    """The upper diagonals of `diag(near) + D' diag(bend) D`, D the second differences."""
    bands = np.zeros((3, len(near)))
    bands[2] = near
    bands[2, :-2] += bend
    bands[2, 1:-1] += 4 * bend
    bands[2, 2:] += bend
    bands[1, 1:-1] -= 2 * bend
    bands[1, 2:] -= 2 * bend
    bands[0, 2:] = bend
    return bands
