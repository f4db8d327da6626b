"""Stretches that drift away from their level and jump back to it at once."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats
from sacm.quality.series.shifts import ShiftCuts, find_jumps, find_shifts

_LENGTHS = np.unique(np.geomspace(16, 110, 16).astype(int))
_SIDE = 12
_KEPT = 0.6  # of the step, that the jump of the level must show
_BACK = 0.35  # of the jump, by which the levels before and after may differ
_LEFT = 0.15  # of the jump, that a ramp may leave over
_FEW = 6
_RARE = 0.006
_MOSTLY = 0.3  # of all such jumps, that must end a drift


def find_returning(plain: Floats, cuts: ShiftCuts, start: int) -> Bools:
    """Find shifts that return, and drifts that end in a jump back, in one piece.

    Args:
        plain: Values `[T]` without season; spikes, bursts and bad values are interpolated.
        cuts: Natural jumps and bumps of the channel.
        start: Row number of the first row.

    Returns:
        Mask of both `[T]`.
    """
    shifts = find_shifts(plain, cuts, start)
    return shifts | find_drifts(plain, cuts, shifts)


def find_drifts(plain: Floats, cuts: ShiftCuts, shifts: Bools) -> Bools:
    """Find drifts that end in a jump back, in one piece.

    The jump must be one that nature hardly makes, the level after it that before the drift, and
    a ramp must tell what lies between. Where such jumps come often, or mostly without a drift, they
    are natural.

    Args:
        plain: Values `[T]` without season; spikes, bursts and bad values are interpolated.
        cuts: Natural jumps and bumps of the channel.
        shifts: Shifts that return, which tell their jumps `[T]`.

    Returns:
        Mask of drifts `[T]`.
    """
    drifts = np.zeros(len(plain), bool)
    steps = np.diff(plain, prepend=plain[:1])
    ends = np.flatnonzero(np.abs(steps) > max(cuts.strict * cuts.step, cuts.edge))
    if not 0 < len(ends) <= max(_FEW, _RARE * len(plain)):
        return drifts
    jumps = find_jumps(plain)[ends]
    sharp = jumps * steps[ends] > _KEPT * steps[ends] ** 2
    sharp &= ~(shifts[ends] | shifts[ends - 1])
    found = 0
    for end, jump in zip(ends[sharp], jumps[sharp], strict=True):
        first = _find_begin(plain, int(end), float(jump))
        if first is None or shifts[first:end].any():
            continue
        middle = (first + end) // 2
        level, size = float(np.median(plain[middle:end])), 0.75 * abs(jump)
        if cuts.is_unusual(level, size, int(end - middle), abs(float(steps[end]))):
            drifts[first:end] = True
            found += 1
    return drifts if found >= _MOSTLY * sharp.sum() else np.zeros(len(plain), bool)


def _find_begin(plain: Floats, end: int, jump: float) -> int | None:
    """First row of the ramp that best tells the rows before a jump back; None if none does."""
    after = float(np.median(plain[end : end + _SIDE]))
    best, begin = _LEFT, None
    for length in _LENGTHS:
        first = end - int(length)
        if first < _SIDE:
            break
        before = float(np.median(plain[first - _SIDE : first]))
        if abs(after - before) > _BACK * abs(jump):
            continue
        way = np.arange(1, length + 1) / length
        ramp = before + (after - before - jump) * way
        left = float(np.mean(np.abs(plain[first:end] - ramp))) / abs(jump)
        if left < best:
            best, begin = left, first
    return begin
