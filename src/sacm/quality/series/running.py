"""Running medians and slow levels of one channel, centred or looking back only."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Floats

_BLOCK = 16


def running_median(values: Floats, width: int, *, trailing: bool = False) -> Floats:
    """Median over a window around each row, or over the rows up to it.

    Args:
        values: Values `[T]`, all finite.
        width: Odd number of rows in the window.
        trailing: Use the row and the `width - 1` rows before it instead of both sides.

    Returns:
        Medians `[T]`. Centred windows mirror the series at its ends; trailing ones repeat the
        first value before the start, so no later row is ever used.
    """
    from scipy.ndimage import median_filter

    if trailing:
        return median_filter(values, size=width, mode="nearest", origin=width // 2)
    return median_filter(values, size=min(width, len(values) - 1 + len(values) % 2), mode="reflect")


def slow_level(values: Floats, width: int, share: float = 0.35) -> Floats:
    """Low quantile over a wide window: a level that bursts inside the window do not lift.

    Args:
        values: Values `[T]`, all finite.
        width: Rows in the window; quantiles of 16 rows each are combined.
        share: Quantile taken inside a block; 0.1 more is taken over the blocks.

    Returns:
        Level `[T]`.
    """
    from scipy.ndimage import percentile_filter

    blocks = len(values) // _BLOCK
    if blocks < 4:
        return np.full(len(values), np.quantile(values, share))
    lows = np.sort(values[: blocks * _BLOCK].reshape(blocks, _BLOCK), axis=1)
    lows = lows[:, int(share * (_BLOCK - 1) + 0.5)]
    size = min(max(3, width // _BLOCK) | 1, blocks - 1 + blocks % 2)
    lows = percentile_filter(lows, 100 * (share + 0.1), size=size, mode="reflect")
    centres = (np.arange(blocks) + 0.5) * _BLOCK
    return np.interp(np.arange(len(values)), centres, lows)


def five_medians(values: Floats) -> Floats:
    """Median of every five neighbours `[T - 4]`, by a network of comparisons."""
    a, b, c, d, e = (values[i : len(values) - 4 + i] for i in range(5))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.maximum(np.minimum(low, high), np.minimum(e, np.maximum(low, high)))
