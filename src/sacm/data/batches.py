"""Windows of a data set, `[B, L, C]`, copied out a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from sacm.data.scaling import ChannelScaler
from sacm.errors import ArgumentError


class ForecastBatch(NamedTuple):
    """Inputs and what follows them."""

    x: Tensor  # [B, L, C]
    y: Tensor  # [B, H, C]
    stamps: Tensor | None  # [B, L + H, 4]
    observed: Tensor | None  # [B, H, C] bool, False where a target was not measured
    positions: Tensor  # [B] row of the first input step
    covariates: Tensor | None = None  # [B, L + H, K], 0 where a past one lies in the future
    series: Tensor | None = None  # [B] place in the scaler, unless all share one


def beside_windows(batch: Any) -> tuple[Tensor | None, ...]:
    """What a forecasting network takes beside windows: calendar positions, then covariates."""
    stamps = getattr(batch, "stamps", None)
    if getattr(batch, "covariates", None) is not None:
        return (stamps, batch.covariates)
    return () if stamps is None else (stamps,)


class LabelledBatch(NamedTuple):
    """Cases and their classes; `mask` is True at real steps, False at padding (where x is 0)."""

    x: Tensor  # [B, L, C]
    mask: Tensor  # [B, L] bool
    y: Tensor  # [B]
    positions: Tensor  # [B] of the cases in the data set


class TelemetryBatch(NamedTuple):
    """Windows of telemetry and where each begins."""

    x: Tensor  # [B, L, C]
    positions: Tensor  # [B] row of the first step


def window_starts(
    ranges: Iterable[range], length: int, *, stride: int = 1, cover: bool = False
) -> np.ndarray:
    """First rows `[N]` of all windows of `length` steps that lie inside a single range.

    With `cover` a last window ends with each range that holds one, so that every step is seen.
    """
    starts: list[int] = []
    for rows in ranges:
        starts += range(rows.start, rows.stop - length + 1, stride)
        if cover and len(rows) >= length and starts[-1] != rows.stop - length:
            starts.append(rows.stop - length)
    return np.array(starts, dtype=np.int64)


def cut(array: np.ndarray | None, starts: np.ndarray, length: int) -> Any:
    """The windows `[B, length, ...]` of an array `[T, ...]` that begin at `starts`, copied."""
    if array is None:
        return None
    return torch.from_numpy(np.asarray(array[starts[:, None] + np.arange(length)]))


Batch = TypeVar("Batch", ForecastBatch, LabelledBatch, TelemetryBatch)
Indices = np.ndarray | Tensor | Sequence[int]


@dataclass(eq=False)
class Windows(Dataset[Any], Generic[Batch]):
    """Windows by index, a batch at a time: a map-style data set of torch.

    `DataLoader(windows, batch_size=None, sampler=BatchSampler(...))` reads whole batches.
    """

    starts: np.ndarray = field(kw_only=True)  # [N] first rows of windows, or numbers of cases
    scaler: ChannelScaler = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, indices: Indices) -> Batch:
        """The windows at `indices`, copied out together."""
        return self.at(self.starts[np.atleast_1d(np.asarray(indices, dtype=np.int64))])

    __getitem__ = batch

    def at(self, starts: np.ndarray) -> Batch:
        """The windows that begin at these rows `[B]`, or the cases of these numbers."""
        raise NotImplementedError


@dataclass(eq=False)
class ForecastWindows(Windows[ForecastBatch]):
    """`L` input steps and the `H` steps that follow, at every position in `starts`."""

    inputs: np.ndarray  # scaled
    input_len: int
    horizon: int
    targets: np.ndarray | None = None  # scaled, where they are not the inputs
    stamps: np.ndarray | None = None
    observed: np.ndarray | None = None
    interpolated: np.ndarray | None = None
    covariates: np.ndarray | None = None
    past: int = 0  # how many of the covariates, the first, are unknown in the future
    series: np.ndarray | None = None  # place of each row's series in the scaler, if it has several

    def at(self, starts: np.ndarray) -> ForecastBatch:
        length, whole = self.input_len, self.input_len + self.horizon
        targets = self.inputs if self.targets is None else self.targets
        x = cut(self.inputs, starts, length)
        if self.interpolated is not None:
            x = hold_last_value(x, cut(self.interpolated, starts, length))
        y, observed = (cut(a, starts + length, self.horizon) for a in (targets, self.observed))
        stamps, covariates = (cut(a, starts, whole) for a in (self.stamps, self.covariates))
        if covariates is not None:
            covariates[:, length:, : self.past] = 0  # what is not known yet
        series = None if self.series is None else torch.from_numpy(self.series[starts])
        return ForecastBatch(x, y, stamps, observed, torch.from_numpy(starts), covariates, series)


def hold_last_value(x: Tensor, interpolated: Tensor) -> Tensor:
    """Repeat the last measured value in a gap that reaches beyond the end of a window `[B, L, C]`.

    Interpolation over such a gap would let the inputs see the targets. A channel without any
    measured value in the window becomes 0, the mean of the scaled training rows.
    """
    steps = torch.arange(x.shape[1], device=x.device)[None, :, None]
    last = torch.where(interpolated, -1, steps).amax(dim=1, keepdim=True)  # [B, 1, C]
    held = x.gather(1, last.clamp(min=0)).masked_fill(last < 0, 0.0)
    return torch.where(steps > last, held, x)


@dataclass(eq=False)
class LabelledWindows(Windows[LabelledBatch]):
    """Classification cases; `[N, C, L]` is kept as it is and turned batch by batch."""

    X: np.ndarray
    lengths: np.ndarray
    codes: np.ndarray

    def at(self, cases: np.ndarray) -> LabelledBatch:
        mask = np.arange(self.X.shape[2]) < self.lengths[cases, None]  # [B, L]
        x = self.scaler.transform(self.X[cases].transpose(0, 2, 1))  # [B, L, C]
        x = np.where(mask[:, :, None], x, np.float32(0))
        return LabelledBatch(*map(torch.from_numpy, (x, mask, self.codes[cases], cases)))


@dataclass(eq=False)
class TelemetryWindows(Windows[TelemetryBatch]):
    """Windows of `length` steps of telemetry, at every position in `starts`."""

    telemetry: np.ndarray  # scaled
    length: int

    def at(self, starts: np.ndarray) -> TelemetryBatch:
        return TelemetryBatch(cut(self.telemetry, starts, self.length), torch.from_numpy(starts))


class WindowBatches(Generic[Batch]):
    """Iterates over `windows`; each pass is the next epoch.

    The seed and the epoch alone decide the batches; `set_epoch(e)` continues with epoch `e`.

    Example:
        >>> from sacm.data import forecasting_data, forecasting_windows
        >>> data = forecasting_data(np.arange(200.0))
        >>> windows = forecasting_windows(data, input_len=12, horizon=4)
        >>> batches = WindowBatches(windows.train, 32, shuffle=True, drop_last=True)
        >>> next(iter(batches)).x.shape
        torch.Size([32, 12, 1])
    """

    def __init__(
        self,
        windows: Windows[Batch],
        batch_size: int,
        *,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ArgumentError(f"batch_size must be at least 1, got {batch_size}.")
        self.windows: Windows[Batch] = windows
        self.batch_size = batch_size
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.set_epoch(0)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.windows), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the next pass."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Batch]:
        # The pass begins with its first batch: trainers make iterators that they never use. And a
        # pass that is broken off must not shift the next one.
        order = np.arange(len(self.windows))
        if self.shuffle:
            state = np.random.SeedSequence([self.seed, self.epoch]).generate_state(2)
            generator = torch.Generator().manual_seed((int(state[0]) << 31) ^ int(state[1]))
            order = torch.randperm(len(order), generator=generator).numpy()
        self.epoch += 1
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            yield self.windows.batch(order[start : start + self.batch_size])
