"""An epoch of batches in an order that depends on seed and epoch alone; steps out of windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from sacm.data.batches import Batch, Windows
from sacm.errors import ArgumentError


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
        if batch_size < 1:
            raise ArgumentError(f"batch_size must be at least 1, got {batch_size}.")
        if seed < 0:
            raise ArgumentError(f"seed must be at least 0, got {seed}.")
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
