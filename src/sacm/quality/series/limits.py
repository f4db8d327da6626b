"""Values outside the range that a channel can take, and the scale of a channel."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats

_MARGIN = 1.5
_FEWEST = 30


def robust_scale(values: Floats) -> float:
    """Standard deviation of a channel as its inner 70 % tell it; 0 if it is constant.

    Args:
        values: Finite values `[n]`.
    """
    low, inner_low, inner_high, high = np.quantile(values, [0.05, 0.15, 0.85, 0.95])
    if inner_high > inner_low:
        return float(inner_high - inner_low) / 2.07
    if high > low:
        return float(high - low) / 3.29
    return float(values.std())


def find_limits(values: Floats, sensitivity: float = 1.0) -> tuple[float, float]:
    """Lowest and highest value that a channel is believed to take.

    The span of the inner 98 % is widened by one and a half of itself at each side. Values equal
    to the median are left out, since a channel that rests at zero has no span otherwise.

    Args:
        values: Finite values `[n]` without gap codes.
        sensitivity: Above 1 narrows the limits.

    Returns:
        Lower and upper limit; infinite where too few values tell.
    """
    centre = float(np.median(values))
    varied = values[values != centre]
    if len(varied) < _FEWEST:
        return float("-inf"), float("inf")
    low, quarter, three_quarters, high = np.quantile(varied, [0.01, 0.25, 0.75, 0.99])
    margin = _MARGIN / sensitivity * max(high - low, 4 * (three_quarters - quarter))
    if margin == 0:
        return float("-inf"), float("inf")
    # Where a channel hardly varies, the value that it holds may lie outside of those that differ.
    return min(float(low - margin), centre), max(float(high + margin), centre)
