"""Isolated values that stand out from their neighbours."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints
from sacm.quality.series.residuals import neighbour_residual

_ROUNDS = 4
_NEAR = 2
_RULES = 0.6
_CONFIRMED = 0.8


def peel_spikes(plain: Floats, sizes: Floats, good: Bools, limit: Floats) -> Bools:
    """Find spikes, largest first, so that a spike does not accuse its neighbours.

    In each of four rounds only values that are among the largest within two rows are taken;
    they are then replaced by interpolation and their neighbours judged again.

    Args:
        plain: Values `[T]` without season, interpolated where not good.
        sizes: Sizes of their residuals `[T]`.
        good: Values that may be flagged `[T]`.
        limit: Size of a residual from which a value is a spike `[T]`.

    Returns:
        Mask of spikes `[T]`.
    """
    flagged = np.zeros(len(plain), bool)
    sizes, plain = sizes.copy(), plain.copy()
    for _ in range(_ROUNDS):
        hot = np.flatnonzero(good & ~flagged & (sizes > limit))
        if not len(hot):
            break
        padded = np.pad(sizes, _NEAR)
        tops = np.max([padded[hot + step] for step in range(2 * _NEAR + 1)], axis=0)
        flagged[hot[sizes[hot] >= _RULES * tops]] = True
        spikes = np.flatnonzero(flagged)
        kept = np.flatnonzero(~flagged)
        if len(kept) < 2:
            break
        plain[spikes] = np.interp(spikes, kept, plain[kept])
        around = _rows_around(spikes, len(plain))
        sizes[around] = np.abs(neighbour_residual(plain, around))
        sizes[spikes] = 0
    return flagged


def confirm_spikes(plain: Floats, spikes: Bools, good: Bools, limit: Floats) -> Bools:
    """Keep the spikes that also stand out from the nearest values that are not flagged.

    Args:
        plain: Values `[T]` without season.
        spikes: Spikes that were found `[T]`.
        good: Values that are not flagged `[T]`.
        limit: Size of a residual from which a value is a spike `[T]`.
    """
    rows, known = np.flatnonzero(spikes), np.flatnonzero(good)
    if len(known) < 5 or not len(rows):
        return spikes
    after = np.searchsorted(known, rows)
    near = np.clip(after[:, None] + np.arange(-2, 2), 0, len(known) - 1)
    around = plain[known[near]]
    median = (around.sum(axis=1) - around.max(axis=1) - around.min(axis=1)) / 2
    left, right = known[near[:, 1]], known[near[:, 2]]
    way = np.where(right > left, (rows - left) / np.maximum(right - left, 1), 0.0)
    line = around[:, 1] * (1 - way) + around[:, 2] * way
    # A value that goes on with one of its sides is the edge of a step.
    sides = (around[:, :2].mean(axis=1), around[:, 2:].mean(axis=1))
    away = np.min([np.abs(plain[rows] - guess) for guess in (median, line, *sides)], axis=0)
    confirmed = spikes.copy()
    confirmed[rows[away < _CONFIRMED * limit[rows]]] = False
    return confirmed


def isolated(spikes: Bools) -> Bools:
    """Spikes with at most two others within four rows; more are a burst."""
    from scipy.ndimage import uniform_filter1d

    count = uniform_filter1d(spikes.astype(float), 9, mode="constant") * 9
    return spikes & (count < 3.5)


def _rows_around(rows: Ints, length: int) -> Ints:
    """Rows within two of the given ones."""
    near = np.zeros(length + 2 * _NEAR, bool)
    for step in range(2 * _NEAR + 1):
        near[rows + step] = True
    return np.flatnonzero(near[_NEAR:-_NEAR])
