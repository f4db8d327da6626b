"""Where a run is trained: Lightning's own switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from lightning.fabric import Fabric

from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings
from sacm.training.loggers import make_logger
from sacm.training.run import Run


@dataclass(frozen=True)
class Hardware:
    """Where to train, and what is shown of it. None of it is part of a run's identity."""

    accelerator: str = "auto"
    devices: int | str = 1
    show_progress: bool = True
    loggers: Sequence[str] = ()


def make_fabric(hardware: Hardware, settings: ResolvedSettings, run: Run) -> Fabric:
    """Lightning's access to the devices."""
    loggers = [make_logger(kind, run.folder) for kind in hardware.loggers]
    try:
        return Fabric(
            accelerator=hardware.accelerator,
            devices=hardware.devices,
            precision=settings.precision,
            loggers=loggers,
        )
    except (ValueError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            f"accelerator {hardware.accelerator!r} with devices {hardware.devices!r} cannot be "
            f"used here: {reason}"
        ) from None


@contextmanager
def thread_count(threads: int) -> Iterator[None]:
    """So many threads for a while: they decide how long sums take, and how they are rounded."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
