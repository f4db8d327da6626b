"""Where a run is trained: devices, random numbers, and the record of them."""

from __future__ import annotations

import platform
import random
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings

if TYPE_CHECKING:
    from lightning.fabric import Fabric

_PACKAGES = ("sacm", "torch", "numpy", "lightning", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Hardware:
    """Where to train, and what is shown of it. None of it is part of a run's identity."""

    accelerator: str = "auto"
    show_progress: bool = True


def make_fabric(hardware: Hardware, settings: ResolvedSettings) -> Fabric:
    """Make Lightning's access to the device."""
    from lightning.fabric import Fabric  # slow to import, and only training needs it

    try:
        return Fabric(accelerator=hardware.accelerator, devices=1, precision=settings.precision)
    except (ValueError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            f"accelerator {hardware.accelerator!r} cannot be used here: {reason}"
        ) from None


def seed_epoch(seed: int, epoch: int = 0) -> None:
    """Seed torch, NumPy and Python for one epoch (0: building the model).

    Random numbers are a function of seed and epoch, so that a resumed run draws the same.
    """
    words = np.random.SeedSequence([seed, epoch, 0]).generate_state(3)
    torch.manual_seed(int(words[0]) << 31 | int(words[1]))
    np.random.seed(int(words[1]))
    random.seed(int(words[2]))


def environment() -> dict[str, Any]:
    """Versions, machine and the commit (with * where files were changed), for a run's record."""
    record: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    record |= {"threads": torch.get_num_threads(), "packages": {}, "git": ""}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            record["packages"][name] = metadata.version(name)
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=*"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        record["git"] = done.stdout.strip()
    return record
