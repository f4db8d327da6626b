"""Values cut off at a limit of the sensor: one extreme value that repeats far too often."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats, count_distinct

_REPEATS = 8
_SHARE = 0.002
_NEIGHBOURS = 20
_TIMES = 6.0
_MOST = 0.3
_NATURAL = (0.0, 1.0, 100.0)


def find_clipping(values: Floats, rests: tuple[float, ...]) -> tuple[float, float]:
    """Lower and upper value at which a channel is cut off.

    A clipped channel takes its extreme value many times more often than any value nearby. The
    bounds 0, 1 and 100 are natural ones (counts, shares, per cent), and a channel that rests at
    another value is bounded by nature (seconds of rain in ten minutes: 0 to 600).

    Args:
        values: Finite values `[n]` without gap codes, sorted.
        rests: Values at which the channel rests by nature.

    Returns:
        The lower and the upper value, minus infinity and infinity where nothing is cut off.
    """
    distinct, counts = count_distinct(values)
    low, high = float("-inf"), float("inf")
    if len(distinct) <= 2 * _NEIGHBOURS:
        return low, high
    inner = [rest for rest in rests if not np.isclose(rest, (distinct[0], distinct[-1])).any()]
    ends = [np.isclose(rests, end).any() for end in (distinct[0], distinct[-1])]
    if inner:
        return low, high
    if not ends[1] and _is_atom(distinct, counts, len(values)):
        low = float(distinct[0])
    if not ends[0] and _is_atom(distinct[::-1], counts[::-1], len(values)):
        high = float(distinct[-1])
    return low, high


def _is_atom(distinct: Floats, counts: np.ndarray, rows: int) -> bool:
    """Whether the first of the ordered distinct values is a limit of the sensor."""
    if abs(distinct[0]) in _NATURAL:
        return False
    if counts[0] > _MOST * rows:
        return False
    usual = max(float(counts[1 : 1 + _NEIGHBOURS].max()), 1.0)
    return bool(counts[0] >= max(_REPEATS, _SHARE * rows, _TIMES * usual))
