"""How a fault is put into one channel of a series, and the faults that the library has itself.

A fault hits single steps, segments, or steps that it chooses. Segments have 24 to 95 steps; in
short series a fortieth to a tenth of the rows. Sizes are in standard deviations of the channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MIX = ("points", "burst", "stuck", "zero")
_TRIES, _STRICT_TRIES = 5000, 3000  # at drawing a segment; after the second, it may overlap others
_OVERLAP = 0.2  # the share of a segment that may overlap other kinds of a mixture
_DEGREES_OF_FREEDOM = 2.5


@dataclass
class Channel:
    """One channel while faults are put into it, in place.

    Attributes:
        values: `[T]`, float64.
        kinds: `[T]` codes of the faults so far, 0 for untouched steps.
        centre: Mean of the original channel.
        size: What counts as one deviation: that of the original channel times the severity.
        mixed: Whether other kinds share the channel, so that segments may overlap a little.
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


# Corrupts about a share of a channel and marks what it corrupted with a code.
SeriesFault = Callable[[Channel, float, int, np.random.Generator], None]
PointChange = Callable[[np.ndarray, Channel, DrawnOffsets], np.ndarray]
SegmentChange = Callable[[np.ndarray, Channel, np.random.Generator], np.ndarray | float]
# Changed values [T] and which of them are corrupted.
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
        count = int(hit.sum())
        drawn = DrawnOffsets(
            random.choice(np.array([-1.0, 1.0]), count),
            random.standard_normal(count),
            random.uniform(3, 8, count),
            random.uniform(12, 40, count),
        )
        channel.values[hit] = change(channel.values[hit], channel, drawn)
        channel.kinds[hit] = code

    return fault


def on_segments(change: SegmentChange) -> SeriesFault:
    """Make a fault of segments.

    Args:
        change: Gets the values of a segment, the channel and a source of random numbers; returns
            what takes their place.
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
            segment = slice(first, first + length)
            channel.values[segment] = change(channel.values[segment], channel, random)
            channel.kinds[segment] = code
            done += length

    return fault


def on_channel(change: WholeChange) -> SeriesFault:
    """Make a fault that chooses its own steps.

    Args:
        change: Gets the channel, the share and a source of random numbers; returns changed values
            `[T]` and which of them are corrupted.
    """

    def fault(channel: Channel, share: float, code: int, random: np.random.Generator) -> None:
        values, hit = change(channel, share, random)
        hit &= channel.kinds == 0
        channel.values[hit] = values[hit]
        channel.kinds[hit] = code

    return fault


def put(value: float) -> SegmentChange:
    """Make a change that puts one number in place of a segment."""
    return lambda segment, channel, random: value


def add_points(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Add normal errors of three deviations."""
    return values + channel.size * (3 * drawn.normal)


def add_burst(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """Add white noise of 1.5 deviations."""
    return segment + 1.5 * channel.size * random.standard_normal(len(segment))


def hold_first(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> float:
    """Hold the first value."""
    return float(segment[0])


def add_gaussian_noise(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add normal noise of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_normal(x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


def add_student_t(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add noise with heavy tails, of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_t(_DEGREES_OF_FREEDOM, x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


def blank_entries(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Set a share `level` of the entries to 0."""
    return np.asarray(np.where(np.random.default_rng(seed).random(x.shape) < level, 0.0, x))


def spread_of(x: np.ndarray) -> np.ndarray:
    """Standard deviation `[C]` of each channel of `[..., C]`; 1 where a channel is constant."""
    spread = x.std(axis=tuple(range(x.ndim - 1)))
    return np.where(spread > 0, spread, 1.0)
