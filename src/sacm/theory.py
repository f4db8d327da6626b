"""The capacity analysis of the paper: regularisation strength, surrogate risk, oracle allocation.

Every function takes floats or NumPy arrays that broadcast, and raises an `ArgumentError` for values
out of range. Their arguments:

- `p`: dropout rates in [0, 1); `width`: the number of coordinates of a layer.
- `strength`: the regularisation strength lambda = p / (1 - p) of a dropout rate.
- `sigma`: the residual magnitude of a window.
- `c1`, `c2`: the weights of bias and variance, positive.
- `p_min`, `p_max`: the lowest and the highest dropout rate, `0 <= p_min < p_max < 1`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sacm.errors import ArgumentError

Array = npt.NDArray[np.float64]
Numbers = float | npt.ArrayLike


def regularization_strength(p: Numbers) -> Array:
    """Return `lambda(p) = p / (1 - p)`, the variance of the inverted-dropout multiplier.

    Example:
        >>> float(regularization_strength(0.5))
        1.0
    """
    rate = np.asarray(p, dtype=float)
    if np.any((rate < 0) | (rate >= 1)):
        raise ArgumentError(f"a dropout rate must lie in [0, 1), got {p!r}.")
    return np.asarray(rate / (1 - rate))


def active_width(p: Numbers, width: Numbers) -> Array:
    """Return the expected number `(1 - p) d` of coordinates that stay active.

    Example:
        >>> float(active_width(0.25, 64))
        48.0
    """
    return np.asarray(width, dtype=float) / (1 + regularization_strength(p))


def surrogate_risk(strength: Numbers, sigma: Numbers, c1: float, c2: float) -> Array:
    """Return `E(lambda, sigma) = c1 lambda² + c2 sigma² / (1 + lambda)²`.

    Example:
        >>> float(surrogate_risk(1.0, 2.0, c1=1.0, c2=1.0))
        2.0
    """
    _check_weights(c1, c2)
    lam, sig = np.asarray(strength, dtype=float), np.asarray(sigma, dtype=float)
    return np.asarray(c1 * lam**2 + c2 * sig**2 / (1 + lam) ** 2)


def oracle_strength(sigma: Numbers, c1: float, c2: float, p_min: float, p_max: float) -> Array:
    """Return the strength of least surrogate risk, `g(sigma)`, within the bounds.

    It is the root of `c1 lambda (1 + lambda)³ = c2 sigma²`, clipped to the strengths of `p_min`
    and `p_max`.

    Example:
        >>> g = oracle_strength([0.0, 1.0, 100.0], c1=1.0, c2=1.0, p_min=0.05, p_max=0.5)
        >>> g.round(3).tolist()
        [0.053, 0.38, 1.0]
    """
    _check_weights(c1, c2)
    if not 0 <= p_min < p_max < 1:
        raise ArgumentError(f"0 <= p_min < p_max < 1 must hold, got {p_min} and {p_max}.")
    low, high = regularization_strength(p_min), regularization_strength(p_max)
    target = c2 * np.asarray(sigma, dtype=float) ** 2 / c1
    # f(lambda) = lambda (1 + lambda)³ - target is increasing and convex, so Newton's steps from
    # the right of the root never overshoot it; beyond `high` the clipped answer is `high` anyway.
    lam = np.full_like(target, float(high))
    for _ in range(100):
        slope = (1 + lam) ** 2 * (1 + 4 * lam)
        step = (lam * (1 + lam) ** 3 - target) / slope
        lam = np.clip(lam - step, 0, high)
        if np.all(np.abs(step) <= 1e-15 * (1 + lam)):
            break
    return np.asarray(np.clip(lam, low, high))


def excess_risk(
    fixed_strength: float, sigmas: npt.ArrayLike, c1: float, c2: float, p_min: float, p_max: float
) -> tuple[float, float]:
    """Return the mean excess risk of one strength for all windows, and its bound `c1 Var[g]`.

    `sigmas` `[N]` are the residual magnitudes of the windows.

    Example:
        >>> excess, bound = excess_risk(0.2, [0.1, 0.5, 2.0], c1=1.0, c2=1.0, p_min=0.0, p_max=0.5)
        >>> excess >= bound > 0
        True
    """
    sig = np.asarray(sigmas, dtype=float)
    if sig.ndim != 1 or sig.size == 0:
        raise ArgumentError(f"sigmas must be a non-empty vector, got shape {sig.shape}.")
    oracle = oracle_strength(sig, c1, c2, p_min, p_max)
    gap = surrogate_risk(fixed_strength, sig, c1, c2) - surrogate_risk(oracle, sig, c1, c2)
    return float(gap.mean()), float(c1 * oracle.var())


def _check_weights(c1: float, c2: float) -> None:
    if c1 <= 0 or c2 <= 0:
        raise ArgumentError(f"c1 and c2 must be positive, got {c1} and {c2}.")
