"""Many windows of one array at once, without a Python loop over them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from sacm.data.scaling import ChannelScaler


def window_starts(ranges: Iterable[range], length: int, *, stride: int = 1) -> np.ndarray:
    """First rows `[N]` of all windows of `length` steps that lie inside a single range."""
    starts = [np.arange(rows.start, rows.stop - length + 1, stride) for rows in ranges]
    return np.concatenate([*starts, np.empty(0)], dtype=np.int64, casting="unsafe")


def covering_starts(rows: range, length: int, *, stride: int = 1) -> np.ndarray:
    """Like `window_starts`, plus a last window that ends with the range: every step is seen."""
    starts = window_starts([rows], length, stride=stride)
    last = rows.stop - length
    if len(starts) and starts[-1] != last:
        return np.append(starts, last)
    return starts


class Series:
    """One contiguous array `[T, ...]` that the windows of all splits share.

    An array in memory is scaled once, here. A memory-mapped one stays where it is and its windows
    are scaled as they are read: the same numbers, without a copy of the series.
    """

    def __init__(self, array: np.ndarray, scaler: ChannelScaler | None = None) -> None:
        mapped = isinstance(array, np.memmap)
        self.on_read = scaler if mapped else None
        if scaler is not None and not mapped:
            array = scaler.transform(array)
        self.array = array if mapped else np.ascontiguousarray(array)

    def reader(self, length: int, *, offset: int = 0) -> WindowReader:
        """A reader of windows of `length` steps, `offset` rows after the row asked for."""
        return WindowReader(self, length, offset)


class WindowReader:
    """Copies windows out of overlapping views `[N, length, ...]` of one array."""

    def __init__(self, series: Series, length: int, offset: int) -> None:
        self.series, self.length, self.offset = series, length, offset
        array = series.array[offset:]
        shape = (len(array) - length + 1, length, *array.shape[1:])
        strides = (array.strides[0], *array.strides)
        self.view = np.lib.stride_tricks.as_strided(array, shape, strides, writeable=False)

    def __call__(self, starts: np.ndarray) -> Tensor:
        """The windows `[B, length, ...]` that begin at `starts`."""
        copied = self.view[starts]
        if self.series.on_read is not None:
            copied = self.series.on_read.transform(copied)
        return torch.from_numpy(copied)

    def __reduce__(self) -> tuple[type[WindowReader], tuple[Series, int, int]]:
        # A pickled view would hold every window; the array is enough, and shared by all readers.
        return WindowReader, (self.series, self.length, self.offset)
