"""What a fault is, and how it corrupts series, telemetry and data sets.

Faults of a series hit single steps or segments of 24 to 95 steps (in short series a fortieth to a
tenth of the rows); sizes are in standard deviations of the channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sacm.data.corrupt import with_values
from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData
from sacm.errors import ArgumentError
from sacm_lab.robust.faults import FAULTS

ORIGINAL = "original"
_TRIES, _STRICT_TRIES = 5000, 3000  # at drawing a segment; after the second, it may overlap others
_OVERLAP = 0.2  # the share of a segment that may overlap other kinds of a mixture


@dataclass
class Channel:
    """One channel while faults are put into it, in place."""

    values: np.ndarray  # [T] float64
    kinds: np.ndarray  # [T] codes of the faults so far, 0 for untouched steps
    centre: float  # mean of the original channel
    size: float  # one deviation of the original channel, times the severity
    mixed: bool = False  # whether other kinds share it, so that segments may overlap a little


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
WindowFault = Callable[[Tensor, Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class Fault:
    """What one kind of fault does to data of each form; None where it is not defined.

    `sacm.data.corrupt` uses `values`; a run with `contamination` calls the fault.
    """

    name: str
    title: str
    series: SeriesFault | None = None  # made by `at_points` or `on_segments`
    windows: WindowFault | None = None  # z-scored windows [B, L, C] by severities [B]
    training: Callable[[Any, float, int], AnyData] | None = None  # a data set, by ratio and seed
    parts: tuple[str, ...] = ()  # of a mixture; each gets an equal share of the ratio
    largest: float = 1.0  # share of a series

    def values(self, x: np.ndarray, level: float, seed: int) -> np.ndarray:
        """Corrupt a share `level` of a series `[T, C]`."""
        return corrupt_series(x, self.name, level, seed=seed).values

    def __call__(self, data: AnyData, ratio: float, seed: int) -> AnyData:
        """Corrupt a share of the training and validation part of a data set."""
        if self.training is not None:
            return self.training(data, ratio, seed)
        if isinstance(data, ClassificationData):
            usable = ", ".join(name for name, each in FAULTS.items() if each.training)
            raise ArgumentError(
                f"{self.name} does not corrupt labels of {data.name}: use {usable}."
            )
        if isinstance(data, AnomalyData):
            ranges = [each.train for each in data.segments]
            train, _ = _corrupt_ranges(data.train, ranges, self.name, ratio, seed)
            # Detectors read numbers only: a value that is gone keeps what it was.
            return replace(data, train=np.where(np.isnan(train), data.train, train))
        return _corrupt_forecasting(data, self.name, ratio, seed)


class CorruptedSeries(NamedTuple):
    """Values [T, C], which of them were corrupted (bool), and their kinds (uint8)."""

    values: np.ndarray
    corrupted: np.ndarray
    kinds: np.ndarray


def series_kinds() -> tuple[str, ...]:
    """Names of the codes in `CorruptedSeries.kinds`; the first is an untouched value."""
    return (ORIGINAL, *(name for name, fault in FAULTS.items() if fault.series is not None))


def corrupt_series(
    values: np.ndarray, kind: str, ratio: float, *, severity: float = 1.0, seed: int = 0
) -> CorruptedSeries:
    """Corrupt a share `ratio` of the values of every channel of a series `[T, C]`, and say which.

    The kinds of a mixture share the ratio; `severity` multiplies the size of every fault. Values
    come back in the precision of the input, NaN where a value was removed.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> values, corrupted, kinds = corrupt_series(rows, "mix", 0.3, seed=1)
    """
    values = np.asarray(values)
    parts = series_parts(kind)
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) < 2:
        raise ArgumentError(
            f"{kind} needs a series of floating-point numbers [T, C] with T of 2 or more, got "
            f"{values.dtype} of shape {list(values.shape)}."
        )
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"ratio must lie between 0 and 1, got {ratio}.")
    if not 0 < severity < np.inf:
        raise ArgumentError(f"severity must be a positive number, got {severity}.")
    random = np.random.default_rng(seed)
    deviation, centre = np.nanstd(values, axis=0), np.nanmean(values, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    result, kinds = values.astype(np.float64), np.zeros(values.shape, dtype=np.uint8)
    codes = {name: code for code, name in enumerate(series_kinds())}
    for c in range(values.shape[1]):
        size = severity * deviation[c]
        channel = Channel(result[:, c], kinds[:, c], centre[c], size, len(parts) > 1)
        for name, fault in parts.items():
            fault(channel, ratio / len(parts), codes[name], random)
    hit = kinds > 0
    return CorruptedSeries(np.where(hit, result.astype(values.dtype), values), hit, kinds)


def series_parts(kind: str) -> dict[str, SeriesFault]:
    """Give the faults of a kind by name: itself, or those of a mixture."""
    kinds = FAULTS.get(kind).parts or (FAULTS.entry(kind).name,)
    parts = {name: FAULTS.get(name).series for name in kinds}
    defined = {name: series for name, series in parts.items() if series is not None}
    if len(defined) < len(parts):
        usable = ", ".join(n for n, fault in FAULTS.items() if fault.series or fault.parts)
        raise ArgumentError(f"the fault {kind!r} is not defined for series: use {usable}.")
    return defined


def _corrupt_forecasting(
    data: ForecastingData, kind: str, ratio: float, seed: int
) -> ForecastingData:
    """Corrupt rows, so inputs and targets; `broken` says which values. Test rows stay."""
    ranges = [rows for split in ("train", "val") for rows in data.ranges(split)]
    values, hit = _corrupt_ranges(data.values, ranges, kind, ratio, seed)
    worse = with_values(data, values, clean=False)
    if data.targets is not None:
        targets, test = worse.values.copy(), slice(data.splits.test.start, data.splits.test.stop)
        targets[test] = data.targets[test]
        worse = replace(worse, targets=targets)
    return replace(worse, broken=hit)


def _corrupt_ranges(
    values: np.ndarray, ranges: list[range], kind: str, ratio: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Values `[T, C]` with each range of rows corrupted by itself, and which of them were."""
    result, hit = values.copy(), np.zeros(values.shape, dtype=bool)
    for number, rows in enumerate(ranges):
        part = slice(rows.start, rows.stop)
        if len(rows) > 1:
            result[part], hit[part], _ = corrupt_series(
                values[part], kind, ratio, seed=seed + number
            )
    return result, hit


def at_points(change: PointChange, *, isolated: bool = False) -> SeriesFault:
    """Make a fault of single steps, no two in a row if they are `isolated`.

    `change` gets the values of the chosen steps, the channel and random numbers for them.
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
    """Make a fault of segments: `change` gets the values of one, and returns what replaces them."""

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
