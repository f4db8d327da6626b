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
    """Copies windows out of one array.

    Every window is one stretch of memory, so the array is seen as overlapping items of that many
    bytes: NumPy copies such items whole, twice as fast as element by element.
    """

    def __init__(self, series: Series, length: int, offset: int) -> None:
        self.series, self.length, self.offset = series, length, offset
        rows = series.array[offset:]
        step = rows.strides[0]
        self.dtype, self.shape = rows.dtype, (-1, length, *rows.shape[1:])
        self.items: np.ndarray = np.ndarray(
            shape=max(0, len(rows) - length + 1),
            dtype=np.dtype((np.void, length * step)),
            buffer=rows,
            strides=step,
        )

    def __call__(self, starts: np.ndarray) -> Tensor:
        """The windows `[B, length, ...]` that begin at `starts`."""
        copied = self.items[starts].view(self.dtype).reshape(self.shape)
        if self.series.on_read is not None:
            copied = self.series.on_read.transform(copied)
        return torch.from_numpy(copied)

    def __reduce__(self) -> tuple[type[WindowReader], tuple[Series, int, int]]:
        # Pickled items would be all windows; the array is enough, and shared by all readers.
        return WindowReader, (self.series, self.length, self.offset)
