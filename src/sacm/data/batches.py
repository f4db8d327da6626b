"""Windows of a data set, `[B, L, C]`, copied out a whole batch at once.

All window classes are map-style data sets, which a torch `DataLoader` takes as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map

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
    covariates = getattr(batch, "covariates", None)
    if covariates is not None:
        return (batch.stamps, covariates)
    return () if batch.stamps is None else (batch.stamps,)


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


Batch = TypeVar("Batch", ForecastBatch, LabelledBatch, TelemetryBatch)
Indices = np.ndarray | Tensor | Sequence[int]


class Windows(Dataset[Any], ABC, Generic[Batch]):
    """Windows by index, one batch at a time."""

    scaler: ChannelScaler

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: Indices) -> Batch:
        """The windows at `indices`, copied out together."""

    def __getitem__(self, index: int) -> Batch:
        """One window, without the batch dimension."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"Window {index} of {count}.")
        one = self.batch([index % count])
        fields: list[Any] = [None if field is None else field[0] for field in one]
        return type(one)(*fields)

    def __getitems__(self, indices: Sequence[int]) -> list[Collated]:
        """One ready batch, which the default collate function unwraps."""
        return [Collated(self.batch(indices))]


def positions_array(indices: Indices) -> np.ndarray:
    """Positions as a NumPy array."""
    return indices if isinstance(indices, np.ndarray) else np.asarray(indices, dtype=np.int64)


class Collated(NamedTuple):
    """A batch that needs no collating."""

    batch: ForecastBatch | LabelledBatch | TelemetryBatch


def unwrap(
    collated: Sequence[Collated], *, collate_fn_map: object = None
) -> ForecastBatch | LabelledBatch | TelemetryBatch:
    """Torch's collate hook for `Collated`."""
    return collated[0].batch


default_collate_fn_map[Collated] = unwrap


class ForecastWindows(Windows[ForecastBatch]):
    """`L` input steps and the `H` steps that follow, at every position in `starts`."""

    def __init__(
        self,
        inputs: Series,
        starts: np.ndarray,
        *,
        input_len: int,
        horizon: int,
        scaler: ChannelScaler,
        targets: Series | None = None,
        stamps: Series | None = None,
        observed: Series | None = None,
        interpolated: Series | None = None,
        covariates: Series | None = None,
        past: int = 0,
        series: np.ndarray | None = None,
    ) -> None:
        self.starts = starts
        self.series = series  # the place of each row's series in the scaler, if it has several
        self.past = past  # how many of the covariates, the first, are unknown in the future
        self.input_len, self.horizon = input_len, horizon
        self.scaler = scaler
        self.read_x = inputs.reader(input_len)
        self.read_y = (targets or inputs).reader(horizon, offset=input_len)
        whole = input_len + horizon
        beside = {
            "stamps": (stamps, whole, 0),
            "observed": (observed, horizon, input_len),
            "interpolated": (interpolated, input_len, 0),
            "covariates": (covariates, whole, 0),
        }
        self.readers = {
            name: rows.reader(length, offset=offset)
            for name, (rows, length, offset) in beside.items()
            if rows is not None
        }

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, indices: Indices) -> ForecastBatch:
        """See `ForecastBatch`."""
        starts = self.starts[positions_array(indices)]
        x, held = self.read_x(starts), {name: read(starts) for name, read in self.readers.items()}
        if "interpolated" in held:
            x = hold_last_value(x, held["interpolated"])
        if "covariates" in held:
            held["covariates"][:, self.input_len :, : self.past] = 0  # what is not known yet
        return ForecastBatch(
            x,
            self.read_y(starts),
            held.get("stamps"),
            held.get("observed"),
            torch.from_numpy(starts),
            held.get("covariates"),
            None if self.series is None else torch.from_numpy(self.series[starts]),
        )


def hold_last_value(x: Tensor, interpolated: Tensor) -> Tensor:
    """Repeat the last measured value in a gap that reaches beyond the end of a window.

    Interpolation over such a gap would let the inputs see the targets. A channel without any
    measured value in the window becomes 0, the mean of the scaled training rows.

    Args:
        x: Scaled windows `[B, L, C]`.
        interpolated: True where a value was filled from both sides, `[B, L, C]`.

    Example:
        >>> x = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> hold_last_value(x, torch.tensor([[[False], [False], [True]]])).flatten().tolist()
        [1.0, 2.0, 2.0]
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
    _: KW_ONLY
    cases: np.ndarray
    scaler: ChannelScaler

    def __len__(self) -> int:
        return len(self.cases)

    def batch(self, indices: Indices) -> LabelledBatch:
        """See `LabelledBatch`."""
        cases = self.cases[positions_array(indices)]
        mask = np.arange(self.X.shape[2]) < self.lengths[cases, None]  # [B, L]
        x = self.scaler.transform(self.X[cases].transpose(0, 2, 1))  # [B, L, C]
        x = np.where(mask[:, :, None], x, np.float32(0))
        codes = torch.from_numpy(self.codes[cases])
        return LabelledBatch(
            torch.from_numpy(x), torch.from_numpy(mask), codes, torch.from_numpy(cases)
        )


class TelemetryWindows(Windows[TelemetryBatch]):
    """Windows of `length` steps of telemetry, at every position in `starts`."""

    def __init__(
        self, rows: Series, starts: np.ndarray, *, length: int, scaler: ChannelScaler
    ) -> None:
        self.starts = starts
        self.length = length
        self.rows = len(rows.array)
        self.scaler = scaler
        self.read = rows.reader(length)

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, indices: Indices) -> TelemetryBatch:
        """See `TelemetryBatch`."""
        starts = self.starts[positions_array(indices)]
        return TelemetryBatch(self.read(starts), torch.from_numpy(starts))


class WindowBatches(Generic[Batch]):
    """Iterates over `windows`; each pass is the next epoch.

    Two loaders with the same seed give the same batches in every epoch whatever else happens in the
    process, `set_epoch(e, batch=k)` continues at batch `k` of epoch `e`, and `state_dict` remembers
    the place. With several processes each takes its own part of every global batch.

    Example:
        >>> from sacm.data import forecasting_data, forecasting_windows
        >>> data = forecasting_data(np.arange(200.0), name="counter")
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
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("seed", seed, 0)):
            if value < least:
                raise ArgumentError(f"{name} must be at least {least}, got {value}.")
        if not 0 <= rank < processes:
            raise ArgumentError(f"rank must be in 0 … {processes - 1}, got {rank}.")
        if processes > 1 and not drop_last:
            raise ArgumentError(
                "Several processes need drop_last=True, so that all make the same number of steps; "
                "evaluate in a single process."
            )
        self.windows: Windows[Batch] = windows
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.seed = seed
        self.rank, self.processes = rank, processes
        self.set_epoch(0)

    def __len__(self) -> int:
        """Batches in a full epoch."""
        whole, rest = divmod(len(self.windows), self.batch_size * self.processes)
        return whole + (rest > 0 and not self.drop_last)

    def set_epoch(self, epoch: int, *, batch: int = 0) -> None:
        """Begin the next pass at `batch` of `epoch`."""
        self.epoch = self.next_epoch = epoch
        self.done = self.first_batch = batch

    def order(self, epoch: int) -> np.ndarray:
        """The order `[N]` in which `epoch` visits the windows."""
        count = len(self.windows)
        if not self.shuffle:
            return np.arange(count)
        state = np.random.SeedSequence([self.seed, epoch]).generate_state(2)
        generator = torch.Generator().manual_seed((int(state[0]) << 31) ^ int(state[1]))
        return torch.randperm(count, generator=generator).numpy()

    def __iter__(self) -> Iterator[Batch]:
        # The pass begins with its first batch: trainers make iterators that they never use. And a
        # pass that is broken off must not shift the next one.
        epoch, first = self.next_epoch, self.first_batch
        self.next_epoch, self.first_batch = epoch + 1, 0
        order = self.order(epoch)
        size, step = self.batch_size, self.batch_size * self.processes
        self.epoch = epoch
        for number in range(first, len(self)):
            start = number * step + self.rank * size
            # Counted before the batch is handed out: a state saved while it is in use is past it.
            self.done = number + 1
            yield self.windows.batch(order[start : start + size])
        self.epoch, self.done = epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        """The epoch of the last pass and how many of its batches were handed out."""
        return {"epoch": self.epoch, "batch": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Begin the next pass where `state` was taken."""
        self.set_epoch(state["epoch"], batch=state["batch"])


class OverlapMean:
    """The mean over all windows that cover a step, collected batch by batch in float64.

    >>> mean = OverlapMean(rows=3)
    >>> mean.update(torch.tensor([[1.0, 2.0], [4.0, 5.0]]), torch.tensor([0, 1]))
    >>> mean.result().tolist()
    [1.0, 3.0, 5.0]
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.total: Tensor | None = None
        self.count: Tensor | None = None

    def update(self, scores: Tensor, positions: Tensor) -> None:
        """Add `scores` `[B, L, ...]` of windows whose first rows are `positions` `[B]`."""
        scores = scores.detach().cpu().double()  # not every accelerator has float64
        if self.total is None or self.count is None:
            self.total = torch.zeros(self.rows, *scores.shape[2:], dtype=torch.float64)
            self.count = torch.zeros(self.rows, dtype=torch.float64)
        steps = torch.arange(scores.shape[1])
        rows = (positions.cpu()[:, None] + steps).flatten()  # [B * L]
        self.total.index_add_(0, rows, scores.flatten(0, 1))
        self.count.index_add_(0, rows, torch.ones_like(rows, dtype=torch.float64))

    def covered(self) -> Tensor:
        """Which steps `[rows]` have been seen in a window."""
        if self.count is None:
            return torch.zeros(self.rows, dtype=torch.bool)
        return self.count.cpu() > 0

    def result(self) -> Tensor:
        """Means `[rows, ...]`; NaN at steps that no window covered."""
        if self.total is None or self.count is None:
            return torch.full((self.rows,), torch.nan, dtype=torch.float64)
        count = self.count.view(-1, *[1] * (self.total.dim() - 1))
        return self.total / count
