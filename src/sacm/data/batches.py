"""An epoch of batches in an order that depends on the seed and the epoch, and on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple

import numpy as np
import torch

from sacm.data.windows import Batch, Windows
from sacm.errors import ArgumentError


class Place(NamedTuple):
    """A batch of an epoch."""

    epoch: int
    batch: int


class WindowBatches(Generic[Batch]):
    """Iterates over `windows`; each pass is the next epoch.

    Two loaders with the same seed give the same batches in every epoch whatever else happens in the
    process, `set_epoch(e, batch=k)` continues at batch `k` of epoch `e`, and `state_dict` remembers
    the place. With several processes each takes its own part of every global batch.
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
        self.next_pass = Place(0, 0)
        self.reached = self.next_pass

    def __len__(self) -> int:
        """Batches in a full epoch."""
        whole, rest = divmod(len(self.windows), self.batch_size * self.processes)
        return whole + (rest > 0 and not self.drop_last)

    def set_epoch(self, epoch: int, *, batch: int = 0) -> None:
        """Begin the next pass at `batch` of `epoch`."""
        self.next_pass = self.reached = Place(epoch, batch)

    def order(self, epoch: int) -> np.ndarray:
        """The order `[N]` in which `epoch` visits the windows."""
        count = len(self.windows)
        if not self.shuffle:
            return np.arange(count)
        state = np.random.SeedSequence([self.seed, epoch]).generate_state(2)
        generator = torch.Generator().manual_seed((int(state[0]) << 31) ^ int(state[1]))
        return torch.randperm(count, generator=generator).numpy()

    def __iter__(self) -> Iterator[Batch]:
        place = self.next_pass
        # A pass that is broken off must not shift the next one.
        self.next_pass = Place(place.epoch + 1, 0)
        return self.one_pass(place)

    def one_pass(self, place: Place) -> Iterator[Batch]:
        """The batches of one epoch from `place` on."""
        order = self.order(place.epoch)
        step = self.batch_size * self.processes
        for number in range(place.batch, len(self)):
            first = number * step + self.rank * self.batch_size
            # Counted before the batch is handed out: a state saved while it is in use is past it.
            self.reached = Place(place.epoch, number + 1)
            yield self.windows.batch(order[first : first + self.batch_size])
        self.reached = Place(place.epoch + 1, 0)

    def state_dict(self) -> dict[str, int]:
        """The place that the last pass has reached."""
        return {"epoch": self.reached.epoch, "batch": self.reached.batch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Begin the next pass where `state` was taken."""
        self.set_epoch(state["epoch"], batch=state["batch"])
