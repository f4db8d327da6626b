"""Faults in whole series `[T, C]`, for training on contaminated rows and for testing detectors.

Each fault breaks about a share `ratio` of the entries of every channel by itself. Sizes are in
deviations of the channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sacm.errors import ArgumentError
from sacm.faults.catalogue import FAULTS
from sacm.faults.channel import Channel, SeriesFault

GOOD = "good"


class BrokenSeries(NamedTuple):
    """Broken values [T, C], which entries are broken (bool), and their kinds (uint8).

    Kinds are positions in `series_kinds()`.
    """

    values: np.ndarray
    broken: np.ndarray
    kinds: np.ndarray


def series_kinds() -> tuple[str, ...]:
    """Names of the codes in `BrokenSeries.kinds`; the first is an untouched value."""
    return (GOOD, *(name for name, fault in FAULTS.items() if fault.series is not None))


def break_series(
    values: np.ndarray,
    kind: str,
    ratio: float,
    *,
    severity: float = 1.0,
    channels: Sequence[int] | None = None,
    seed: int = 0,
) -> BrokenSeries:
    """A series with faults.

    Args:
        values: numbers [T, C].
        kind: a fault that is defined for series, or a mixture, whose kinds share the ratio.
        ratio: share of the entries to break, between 0 and 1.
        severity: factor of all sizes.
        channels: positions of the channels to break; all if None.
        seed: of places and sizes.

    Returns:
        Values in the precision of the input (NaN where a value was removed), mask and kinds. An
        entry counts as broken even if the fault happens to leave its value as it was.

    Raises:
        ArgumentError: If an argument is none of these.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 2))
        >>> values, broken, kinds = break_series(rows, "mix", 0.3, seed=1)
    """
    values = np.asarray(values)
    _check(values, ratio, severity)
    parts = series_parts(kind)
    random = np.random.default_rng(seed)
    deviation, centre = np.nanstd(values, axis=0), np.nanmean(values, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    result, kinds = values.astype(np.float64), np.zeros(values.shape, dtype=np.uint8)
    codes = {name: code for code, name in enumerate(series_kinds())}
    for c in choose_channels(channels, values.shape[1]):
        size = severity * deviation[c]
        channel = Channel(result[:, c], kinds[:, c], centre[c], size, len(parts) > 1)
        for name, fault in parts.items():
            fault(channel, ratio / len(parts), codes[name], random)
    broken = kinds > 0
    return BrokenSeries(np.where(broken, result.astype(values.dtype), values), broken, kinds)


def series_parts(kind: str) -> dict[str, SeriesFault]:
    """The faults of a kind by name: itself, or those of a mixture.

    Raises:
        ArgumentError: If there is no such fault, or it is not defined for series.
    """
    fault = FAULTS.get(kind)
    names = fault.parts or (FAULTS.spelling(kind),)
    found = {name: FAULTS.get(name).series for name in names}
    parts = {name: series for name, series in found.items() if series is not None}
    if len(parts) < len(found):
        known = ", ".join(name for name, one in FAULTS.items() if one.series or one.parts)
        raise ArgumentError(f"the fault {kind!r} is not defined for series: use {known}.")
    return parts


def choose_channels(channels: Sequence[int] | None, count: int) -> list[int]:
    """Positions of channels, checked.

    Raises:
        ArgumentError: If there is no such channel.
    """
    chosen = list(range(count)) if channels is None else [int(c) for c in channels]
    for c in chosen:
        if not 0 <= c < count:
            raise ArgumentError(f"there is no channel {c}: the data have {count}, from 0 on.")
    return chosen


def _check(values: np.ndarray, ratio: float, severity: float) -> None:
    """Refuse what has no channels of numbers, and shares and sizes that are none."""
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) < 2:
        raise ArgumentError(
            f"A series must be floating-point numbers [T, C] with T of 2 or more, got "
            f"{values.dtype} of shape {list(values.shape)}."
        )
    if not 0 <= ratio <= 1:
        raise ArgumentError(f"ratio must lie between 0 and 1, got {ratio}.")
    if not 0 < severity < np.inf:
        raise ArgumentError(f"severity must be a positive number, got {severity}.")
