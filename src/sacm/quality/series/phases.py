"""Medians by phase of the season, over one or several pieces of a channel."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints


def phase_of(rows: int, start: int, period: int) -> np.ndarray:
    """Phase of every row of a piece whose first row has the number `start`."""
    return (start + np.arange(rows)) % period


def phase_median(parts: list[Floats], good: list[Bools], starts: list[int], period: int) -> Floats:
    """Median of the good values of each phase; phases without any are interpolated.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that count, of each piece.
        starts: Row number of each piece's first row.
        period: Rows of one cycle.

    Returns:
        Medians `[period]`; zeros if nothing is good.
    """
    folded = [_fold(*one, period) for one in zip(parts, good, starts, strict=True)]
    median, count = sorted_median(np.concatenate(folded))
    known = count > 0
    if not known.any():
        return np.zeros(period)
    phases = np.arange(period)
    return np.interp(phases, phases[known], median[known], period=period)


def sorted_median(table: Floats) -> tuple[Floats, Ints]:
    """Medians `[n]` of the columns of a table `[m, n]` without its NaN, and how many count.

    A column of NaN alone has the median NaN and the count 0.
    """
    ordered = np.sort(table, axis=0)
    count = np.isfinite(ordered).sum(axis=0)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    high = np.take_along_axis(ordered, np.minimum(count // 2, len(ordered) - 1)[None], axis=0)[0]
    return (low + high) / 2, count


def _fold(values: Floats, good: Bools, start: int, period: int) -> Floats:
    """A piece as cycles by phases, NaN where there is nothing good."""
    before = start % period
    cycles = -(-(before + len(values)) // period)
    table = np.full(cycles * period, np.nan)
    table[before : before + len(values)] = np.where(good, values, np.nan)
    return table.reshape(cycles, period)
