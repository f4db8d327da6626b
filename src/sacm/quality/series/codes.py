"""Missing values and the gap codes a channel shows itself, such as -9999."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats

_REPEATS = 3
_A_SIDE = 3


def find_codes(values: Floats) -> tuple[float, ...]:
    """Extreme values that repeat and stand apart from all the others.

    A code occurs at least three times and its distance to the nearest other value exceeds the
    span of all other values. At most three are found on each side.

    Args:
        values: Finite values `[n]` of one channel.

    Returns:
        The codes, lowest side first.
    """
    distinct, counts = np.unique(values, return_counts=True)
    found: list[float] = []
    for lowest in (True, False):
        for _ in range(_A_SIDE):
            if len(distinct) < 5:
                break
            if not lowest:
                distinct, counts = distinct[::-1], counts[::-1]
            first, rest = distinct[0], distinct[1:]
            stands_apart = abs(first - rest[0]) > abs(rest[-1] - rest[0])
            is_code = counts[0] >= _REPEATS and stands_apart
            if is_code:
                found.append(float(first))
                distinct, counts = rest, counts[1:]
            if not lowest:
                distinct, counts = distinct[::-1], counts[::-1]
            if not is_code:
                break
    return tuple(found)


def match_codes(values: Floats, codes: tuple[float, ...]) -> Bools:
    """Where values equal one of the codes."""
    if not codes:
        return np.zeros(len(values), bool)
    return np.isin(values, codes)
