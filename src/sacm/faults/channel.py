"""Where in a channel faults go: single steps, stretches, or wherever a fault decides itself.

Stretches have 24 to 95 steps; in short series a fortieth to a tenth of the rows. Sizes are in
deviations of the channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_TRIES, _STRICT_TRIES = 5000, 3000
_OVERLAP = 0.2  # of a stretch, with other kinds of a mixture


@dataclass
class Channel:
    """One channel while faults are put into it, in place.

    Attributes:
        values: `[T]`, float64.
        kinds: `[T]` codes of the faults so far, 0 for untouched steps.
        centre: Mean of the healthy channel.
        size: What counts as one deviation: that of the healthy channel times the severity.
        mixed: Whether other kinds share the channel, so that stretches may overlap a little.
    """

    values: np.ndarray
    kinds: np.ndarray
    centre: float
    size: float
    mixed: bool = False


class DrawnOffsets(NamedTuple):
    """Random numbers for single steps, in deviations; all are drawn whatever the kind."""

    sign: np.ndarray
    normal: np.ndarray
    spike: np.ndarray
    far: np.ndarray


# Breaks about a share of a channel and marks what it broke with a code.
SeriesFault = Callable[[Channel, float, int, np.random.Generator], None]
PointChange = Callable[[np.ndarray, Channel, DrawnOffsets], np.ndarray]
StretchChange = Callable[[np.ndarray, Channel, np.random.Generator], np.ndarray | float]
# Changed values [T] and which of them are broken.
WholeChange = Callable[[Channel, float, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def at_points(change: PointChange, *, isolated: bool = False) -> SeriesFault:
    """Make a fault of single steps.

    Args:
        change: Gets the values of the chosen steps, the channel and random numbers for them.
        isolated: Whether no two steps in a row are chosen.
    """

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        hit = (random.random(len(channel.values)) < share) & (channel.kinds == 0)
        if isolated:
            hit[1:] &= ~hit[:-1]
        channel.values[hit] = change(channel.values[hit], channel, draw_offsets(hit.sum(), random))
        channel.kinds[hit] = code

    return fault


def draw_offsets(count: int, random: np.random.Generator) -> DrawnOffsets:
    """Random numbers for `count` steps."""
    return DrawnOffsets(
        random.choice(np.array([-1.0, 1.0]), count),
        random.standard_normal(count),
        random.uniform(3, 8, count),
        random.uniform(12, 40, count),
    )


def on_stretches(change: StretchChange) -> SeriesFault:
    """Make a fault that puts something in place of stretches.

    Args:
        change: Gets the values of a stretch, the channel and a source of random numbers.
    """

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        rows, done = len(channel.values), 0
        shortest, longest = max(4, min(24, rows // 40)), max(8, min(96, rows // 10))
        slack = _OVERLAP if channel.mixed else 0.0
        for trial in range(_TRIES):
            if done >= share * rows:
                return
            length = int(random.integers(shortest, longest))
            first = int(random.integers(1, max(2, rows - length)))
            around = channel.kinds[first - 1 : first + length + 1]
            if trial < _STRICT_TRIES and np.mean(around > 0) > slack:
                continue
            stretch = slice(first, first + length)
            channel.values[stretch] = change(channel.values[stretch], channel, random)
            channel.kinds[stretch] = code
            done += length

    return fault


def on_channel(change: WholeChange) -> SeriesFault:
    """Make a fault that chooses its own places.

    Args:
        change: Gets the channel, the share and a source of random numbers; gives changed values
            `[T]` and which of them are broken.
    """

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        values, hit = change(channel, share, random)
        hit &= channel.kinds == 0
        channel.values[hit] = values[hit]
        channel.kinds[hit] = code

    return fault
