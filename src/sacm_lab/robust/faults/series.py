"""Faults of series. Those called `tsf_…` are the operators of RobustTSF (arXiv:2402.02032)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from sacm_lab.robust.faults.fault import (
    Channel,
    DrawnOffsets,
    SegmentChange,
    SeriesFault,
    WindowFault,
    at_points,
    on_segments,
)

CODE_VALUE = -9999.0
_START = 0.3  # chance that a sequence of RobustTSF begins after a good step


# Changed values [T] and which of them are corrupted.
WholeChange = Callable[[Channel, float, np.random.Generator], tuple[np.ndarray, np.ndarray]]


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


def add_burst(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """Add white noise of 1.5 deviations."""
    return segment + 1.5 * channel.size * random.standard_normal(len(segment))


def hold_first(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> float:
    """Hold the first value."""
    return float(segment[0])


def add_errors(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Add normal errors of three deviations."""
    return values + channel.size * (3 * drawn.normal)


def add_spikes(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Errors of three to eight deviations, up or down."""
    return values + channel.size * (drawn.sign * drawn.spike)


def leave_range(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Errors of 12 to 40 deviations, up or down."""
    return values + channel.size * (drawn.sign * drawn.far)


def add_constant(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Half a deviation is added (RobustTSF)."""
    return values + 0.5 * channel.size


def add_gaussian(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Normal errors of two deviations (RobustTSF)."""
    return values + 2 * channel.size * drawn.normal


def set_to_mean(values: np.ndarray, channel: Channel, drawn: DrawnOffsets) -> np.ndarray:
    """Single steps become the mean (RobustTSF's missing values)."""
    return np.full_like(values, channel.centre)


def hold_nearly(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """The first value is held, give or take a hundredth of a deviation."""
    result: np.ndarray = segment[0] + 0.01 * channel.size * random.standard_normal(len(segment))
    return result


def shift_level(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """A constant of two to four deviations is added, up or down."""
    return segment + random.choice([-1, 1]) * random.uniform(2, 4) * channel.size


def drift_away(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """A ramp up or down to two to four deviations is added; at its end the channel jumps back."""
    ramp = np.linspace(0, 1, len(segment))
    return segment + random.choice([-1, 1]) * random.uniform(2, 4) * channel.size * ramp


def clip_channel(
    channel: Channel, share: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The whole channel is cut off at one quantile, above or below."""
    above = random.random() < 0.5
    limit = np.nanquantile(channel.values, 1 - share if above else share)
    outside = channel.values > limit if above else channel.values < limit
    return np.full_like(channel.values, limit), outside


def follow_on(
    channel: Channel, share: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of bad steps (RobustTSF).

    After a good step a bad one begins with probability 0.3 by adding N(0, 2²) deviations; after a
    bad one it goes on with probability `share` and holds the last bad value, give or take 0.01.
    """
    count = len(channel.values)
    result, hit = channel.values.copy(), np.zeros(count, dtype=bool)
    chance, normal = random.random(count), channel.size * random.standard_normal(count)
    for t in range(1, count):
        hit[t] = chance[t] < (share if hit[t - 1] else _START)
        if hit[t]:
            result[t] += 2 * normal[t]
            if hit[t - 1]:
                result[t] = result[t - 1] + 0.01 * normal[t]
    return result, hit


def from_window_fault(operator: WindowFault) -> SeriesFault:
    """Make a fault of series from one of windows: each segment is a window with its own severity.

    Severities are uniform; the deviation and mean of the channel turn values into z-scores.
    """

    def change(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
        if len(segment) < 2:
            return segment
        z = torch.from_numpy((segment - channel.centre) / channel.size).view(1, -1, 1)
        severity = torch.tensor([random.random()], dtype=torch.float32)
        generator = torch.Generator().manual_seed(int(random.integers(2**31)))
        broken = operator(z.float(), severity, generator).view(-1).double().numpy()
        return np.asarray(broken * channel.size + channel.centre)

    return on_segments(change)


SERIES: dict[str, tuple[str, SeriesFault]] = {
    "missing": ("segments are gone", on_segments(put(np.nan))),
    "zero": ("segments read 0", on_segments(put(0.0))),
    "stuck": ("segments hold their first value", on_segments(hold_first)),
    "points": ("single steps get normal errors of 3 deviations", at_points(add_errors)),
    "burst": ("segments get noise of 1.5 deviations", on_segments(add_burst)),
    "code": ("segments read -9999", on_segments(put(CODE_VALUE))),
    "near_stuck": ("segments hardly move", on_segments(hold_nearly)),
    "spike": ("single steps are off by 3 to 8 deviations", at_points(add_spikes, isolated=True)),
    "shift": ("segments are off by 2 to 4 deviations", on_segments(shift_level)),
    "drift": ("segments drift away by 2 to 4 deviations", on_segments(drift_away)),
    "range": ("single steps are off by 12 to 40 deviations", at_points(leave_range)),
    "clipped": ("the channel is cut off at a quantile", on_channel(clip_channel)),
    "tsf_const": ("RobustTSF: single steps are off by half a deviation", at_points(add_constant)),
    "tsf_missing": ("RobustTSF: single steps are the mean", at_points(set_to_mean)),
    "tsf_gaussian": ("RobustTSF: normal errors of 2 deviations", at_points(add_gaussian)),
    "tsf_seq": ("RobustTSF: sequences of bad steps", on_channel(follow_on)),
}
MIX = ("points", "burst", "stuck", "zero")
ALL = ("missing", "code", "stuck", "spike", "burst", "shift", "range")
