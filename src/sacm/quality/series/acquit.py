"""What two related channels show at the same time is an event, not a fault of one sensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from sacm.quality.kinds import BURST, SHIFT, SPIKE
from sacm.quality.series.arrays import Bools, Flags, Floats, find_stretches

_RELATED = 0.4
_PARTNERS = 3
_CLIP = 4.0
_SIDE = 12
_SHIFTED = 0.3

ChannelPair = tuple[Floats, Floats]
"""A channel without season in units of its deviation, and its residuals over their size."""


def find_partners(residuals: list[Floats | None]) -> list[list[tuple[int, int]]]:
    """Up to three related channels of each channel, with the sign of the relation.

    Args:
        residuals: Residuals `[T]` of each channel over their typical size, 0 where flagged;
            None for channels that are not judged.

    Returns:
        For each channel a list of (channel, sign).
    """
    known = [c for c, one in enumerate(residuals) if one is not None]
    partners: list[list[tuple[int, int]]] = [[] for _ in residuals]
    if len(known) < 2:
        return partners
    clipped = np.stack([np.clip(one, -_CLIP, _CLIP) for one in residuals if one is not None])
    clipped -= clipped.mean(axis=1, keepdims=True)
    norms = np.sqrt((clipped**2).sum(axis=1))
    norms[norms == 0] = np.inf
    relation = clipped @ clipped.T / norms[:, None] / norms[None]
    np.fill_diagonal(relation, 0)
    for row, channel in enumerate(known):
        for other in np.argsort(-np.abs(relation[row]))[:_PARTNERS]:
            if abs(relation[row, other]) >= _RELATED:
                partners[channel].append((known[other], int(np.sign(relation[row, other]))))
    return partners


def acquit(
    flags: Flags, partners: list[list[tuple[int, int]]], measure: Callable[[int], ChannelPair]
) -> Flags:
    """Take back flags that a related channel explains; gaps, codes and runs are exempt.

    Args:
        flags: Flags `[T, C]` of one piece.
        partners: Related channels of each channel, with signs.
        measure: Gives one channel in deviations and its residuals, by its number.

    Returns:
        Flags `[T, C]` with explained spikes, bursts and shifts set to 0.
    """
    measured = cache(measure)
    result = flags.copy()
    for channel, others in enumerate(partners):
        if not np.isin(flags[:, channel], (SPIKE, BURST, SHIFT)).any():
            continue
        for other, sign in others:
            solid = np.isin(flags[:, other], (0, SPIKE, BURST, SHIFT))
            level, residual = measured(channel)
            other_level, other_residual = measured(other)
            one = result[:, channel]
            _acquit_spikes(one, solid, sign * residual, other_residual)
            _acquit_shifts(one, flags[:, other], sign * level, other_level)
            _acquit_bursts(one, solid, sign * residual, other_residual)
    return result


def _acquit_spikes(flags: Flags, solid: Bools, mine: Floats, theirs: Floats) -> None:
    """Clear spikes that the partner shows with the same sign and half to twice the size."""
    rows = np.flatnonzero((flags == SPIKE) & solid)
    size, other = np.abs(mine[rows]), np.abs(theirs[rows])
    same = (mine[rows] * theirs[rows] > 0) & (other > 0.5 * size) & (other < 2 * size)
    flags[rows[same]] = 0


def _acquit_shifts(flags: Flags, seen: Flags, mine: Floats, theirs: Floats) -> None:
    """Clear shifts whose stretch differs from its sides in the partner likewise.

    A partner that is shifted itself tells nothing, unless both begin and end at the same rows.
    """
    solid = np.isin(seen, (0, SPIKE, BURST, SHIFT))
    for start, stop in _solid_stretches(flags == SHIFT, solid):
        own, other = (_bump(level, start, stop) for level in (mine, theirs))
        alike = own * other > 0 and 0.4 * abs(own) < abs(other)
        if alike and (
            np.mean(seen[start:stop] == SHIFT) < _SHIFTED
            or (_changes(seen, start) and _changes(seen, stop))
        ):
            flags[start:stop][flags[start:stop] == SHIFT] = 0


def _bump(level: Floats, start: int, stop: int) -> float:
    """Difference of a stretch from the rows at both sides."""
    first = max(0, start - _SIDE)
    sides = np.concatenate((level[first:start], level[stop : stop + _SIDE]))
    return float(np.median(level[start:stop]) - np.median(sides)) if len(sides) else 0.0


def _changes(flags: Flags, row: int) -> bool:
    """Whether a shift begins or ends within two rows of a row."""
    near = flags[max(0, row - 3) : row + 3] == SHIFT
    return bool(near.any() and not near.all())


def _acquit_bursts(flags: Flags, solid: Bools, mine: Floats, theirs: Floats) -> None:
    """Clear bursts during which the partner is as noisy and moves in step."""
    for start, stop in _solid_stretches(flags == BURST, solid):
        own, other = mine[start:stop], theirs[start:stop]
        as_noisy = np.median(np.abs(other)) > 0.4 * np.median(np.abs(own))
        if as_noisy and own @ other > 0.5 * np.sqrt((own @ own) * (other @ other)):
            flags[start:stop][flags[start:stop] == BURST] = 0


def _solid_stretches(mask: Bools, solid: Bools) -> list[tuple[int, int]]:
    """Stretches of at least three rows of which the partner saw at least 80 %."""
    stretches = zip(*find_stretches(mask), strict=True)
    return [(a, b) for a, b in stretches if b - a >= 3 and solid[a:b].mean() >= 0.8]
