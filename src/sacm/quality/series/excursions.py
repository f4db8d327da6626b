"""Two to six rows in a row that leap far away and leap back."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints

_LENGTHS = range(2, 7)
_LEAP = 2.0  # in units of the limit of a spike
_BACK = 0.3  # of the leap, that may remain
_BAND = 0.5  # of the usual span, beyond it
_FEW = 3
_RARE = 0.002


def find_excursions(plain: Floats, good: Bools, limit: Floats) -> Bools:
    """Find short stretches that are too long for a spike and too short for a burst or a shift.

    Both ends must be leaps of twice what makes a spike, the level must come back, and every value
    between must lie far outside of the usual range. Where this happens often it is natural.

    Args:
        plain: Values `[T]` without season, interpolated where not good.
        good: Values that may be flagged `[T]`.
        limit: Size of a residual from which a value is a spike `[T]`.

    Returns:
        Mask `[T]`.
    """
    found = np.zeros(len(plain), bool)
    leaps = np.diff(plain, prepend=plain[:1])
    large = np.abs(leaps) > _LEAP * limit
    if not _may_return(np.flatnonzero(large)) or not good.any():
        return found
    low, high = np.quantile(plain[good], [0.01, 0.99])
    span = _BAND * (high - low)
    outside = (plain < low - span) | (plain > high + span)
    firsts = np.flatnonzero(large & outside & good)
    firsts = firsts[firsts > 0]
    count = 0
    for length in _LENGTHS:
        at = firsts[firsts + length < len(plain)]
        after = at + length
        rows = at[:, None] + np.arange(length)
        back = np.abs(plain[after] - plain[at - 1]) < _BACK * np.abs(leaps[at])
        returns = large[after] & (np.sign(leaps[after]) == -np.sign(leaps[at])) & back
        whole = (outside & good & ~found)[rows].all(axis=1)
        chosen = rows[returns & whole]
        found[chosen.ravel()] = True
        count += len(chosen)
    return found if count <= max(_FEW, _RARE * len(plain)) else np.zeros(len(plain), bool)


def _may_return(rows: Ints) -> bool:
    """Whether two large leaps are two to six rows apart."""
    return any(
        np.any(
            (rows[ahead:] - rows[:-ahead] >= _LENGTHS[0])
            & (rows[ahead:] - rows[:-ahead] <= _LENGTHS[-1])
        )
        for ahead in range(1, min(_LENGTHS[-1] + 1, len(rows)))
    )
