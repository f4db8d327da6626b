"""How large is too large: a far quantile, extrapolated from the body of a sample."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats

FEWEST = 30
"""Positive sizes that are needed to draw a cut."""

_BODY = (0.4, 0.7)
_SHAPE = (0.6, 2.5)
_TINY = 1e-300
_RARE = 0.001
_STEP = 2**0.25
_STEPS = 24


def weibull_cut(sizes: Floats, level: float) -> float:
    """Size that a healthy value exceeds with a given probability.

    The tail is a Weibull tail through the 40 % and the 70 % quantile of the positive sizes, so
    up to 30 % bad values hardly move it, and heavy-tailed samples get a high cut by themselves.

    Args:
        sizes: Sample of sizes, any shape; zeros and negative values are left out.
        level: Probability of exceeding the cut, between 0 and 1.

    Returns:
        The cut; infinity where fewer than 30 positive sizes are given.
    """
    positive = sizes[sizes > 0]
    if len(positive) < FEWEST:
        return float("inf")
    low, high = np.quantile(positive, _BODY)
    spread = np.log(np.log(1 - _BODY[1]) / np.log(1 - _BODY[0]))
    shape = np.clip(np.log(max(high, _TINY) / max(low, _TINY)) / spread, *_SHAPE)
    return float(low * (np.log(level) / np.log(1 - _BODY[0])) ** shape)


def tail_factor(sizes: Floats, cut: float, rare: float = _RARE) -> float:
    """Factor that moves a cut outwards while what lies beyond it is the tail of what lies within.

    Faults stand apart: more of them lie beyond the cut than in the octave below it. A long tail
    thins out steadily; there the cut goes on until hardly any size is beyond.

    Args:
        sizes: Sample of sizes `[n]`.
        cut: Cut to begin with.
        rare: Share of the sizes that may lie beyond the cut in any case.
    """
    ordered = np.sort(sizes)
    factors = _STEP ** np.arange(_STEPS)
    cuts = cut * factors
    beyond = len(ordered) - np.searchsorted(ordered, cuts, side="right")
    within = len(ordered) - np.searchsorted(ordered, cuts / 2, side="right") - beyond
    stands = (beyond <= rare * len(ordered)) | (beyond >= within)
    return float(factors[np.argmax(stands)]) if stands.any() else float(factors[-1])
