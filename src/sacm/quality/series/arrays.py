"""Array types, stretches of a mask, and gaps filled in: shared by every test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]


def find_stretches(mask: Bools, join: int = 0) -> tuple[Ints, Ints]:
    """First rows and rows after the last of the stretches where a mask holds.

    Args:
        mask: Mask `[T]`.
        join: Stretches with at most this many rows between them count as one.

    Returns:
        Starts and stops, in order.
    """
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if join and len(starts) > 1:
        apart = starts[1:] - stops[:-1] > join
        starts = starts[np.concatenate(([True], apart))]
        stops = stops[np.concatenate((apart, [True]))]
    return starts, stops


def count_distinct(ordered: Floats) -> tuple[Floats, Ints]:
    """Distinct values of a sorted array and how often each occurs."""
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], np.diff(starts, append=len(ordered))


def fill_linear(values: Floats, good: Bools) -> Floats:
    """Values `[T]` with those that are not good interpolated; zeros where none is good."""
    if good.all():
        return values
    if not good.any():
        return np.zeros_like(values)
    filled = values.copy()
    gaps, known = np.flatnonzero(~good), np.flatnonzero(good)
    filled[gaps] = np.interp(gaps, known, values[known])
    return filled


def fill_forward(values: Floats, good: Bools) -> Floats:
    """Values `[T]` with those that are not good replaced by the last good one before them.

    Rows before the first good one become 0: nothing is known there.
    """
    last = np.maximum.accumulate(np.where(good, np.arange(len(values)), -1))
    return np.where(last >= 0, values[last], 0.0)


def apply_to_good(values: Floats, good: Bools, change: Callable[[Floats], Floats]) -> Floats:
    """A change of the good values alone, put end to end; interpolated at the others."""
    if good.all():
        return change(values)
    result = np.zeros_like(values)
    if good.any():
        result[good] = change(values[good])
    return fill_linear(result, good)


def join_parts(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The arrays of several pieces, end to end."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
