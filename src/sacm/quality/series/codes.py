"""Missing values and the gap codes a channel shows itself, such as -9999."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints, count_distinct

_REPEATS = 3
_A_SIDE = 3
_FEWEST = 5
_OFTEN = 8
_SHARE = 0.002
_APART = 0.1
_CUSTOMARY = (999.0, 9999.0, 99999.0, 999999.0, 999.9, 9999.9, 32767.0, 32768.0)


def find_codes(values: Floats) -> tuple[float, ...]:
    """Extreme values that repeat and stand apart from all the others.

    A code occurs at least three times, or once if it is customary (-9999), and its distance to
    the nearest other value exceeds the span of all other values; a tenth of the span is enough for
    a negative value that comes often where all others are positive. Where a channel has only a few
    values, so that its span says little, a code must be customary. At most three are found on each
    side.

    Args:
        values: Finite values `[n]` of one channel, sorted.

    Returns:
        The codes, lowest side first.
    """
    distinct, counts = count_distinct(values)
    lows: list[float] = []
    highs: list[float] = []
    # A code at one side can hide one at the other, so both sides are tried in turn.
    for _ in range(_A_SIDE):
        if _is_code(distinct, counts):
            lows.append(float(distinct[0]))
            distinct, counts = distinct[1:], counts[1:]
        if _is_code(distinct[::-1], counts[::-1]):
            highs.append(float(distinct[-1]))
            distinct, counts = distinct[:-1], counts[:-1]
    return (*lows, *highs)


def _is_code(distinct: Floats, counts: Ints) -> bool:
    """Whether the first of the ordered distinct values repeats and stands apart."""
    if len(distinct) < 2:
        return False
    gap, span = abs(distinct[0] - distinct[1]), abs(distinct[-1] - distinct[1])
    customary = np.isclose(abs(distinct[0]), _CUSTOMARY, rtol=1e-6).any()
    if len(distinct) < _FEWEST:
        return bool(customary and gap > span)
    if distinct[0] < 0 <= distinct[1] and counts[0] >= max(_OFTEN, _SHARE * counts.sum()):
        # One negative value among positive ones, again and again, is no measurement.
        return bool(gap > _APART * span)
    return bool(gap > span and (counts[0] >= _REPEATS or customary))


def match_codes(values: Floats, codes: tuple[float, ...]) -> Bools:
    """Where values equal one of the codes."""
    if not codes:
        return np.zeros(len(values), bool)
    return np.isin(values, codes)
