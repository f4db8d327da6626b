"""Where a run is trained: devices, loggers, threads, random numbers, and the record of them."""

from __future__ import annotations

import os
import platform
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric

from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings

LOGGERS = ("tensorboard", "mlflow")
_PACKAGES = ("sacm", "torch", "numpy", "lightning", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Hardware:
    """Where to train, and what is shown of it. None of it is part of a run's identity."""

    accelerator: str = "auto"
    devices: int | str = 1
    show_progress: bool = True
    loggers: Sequence[str] = ()


def make_fabric(hardware: Hardware, settings: ResolvedSettings, folder: Path) -> Fabric:
    """Make Lightning's access to the devices; loggers write into the folder of the run."""
    loggers = [make_logger(kind, folder) for kind in hardware.loggers]
    where: Any = {"accelerator": hardware.accelerator, "devices": hardware.devices}
    try:
        return Fabric(**where, precision=settings.precision, loggers=loggers)
    except Exception as error:  # Lightning has several of its own for hardware that is not there
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            f"accelerator {hardware.accelerator!r} with devices {hardware.devices!r} cannot be "
            f"used here: {reason}"
        ) from None


def make_logger(kind: str, folder: Path) -> Any:
    """Make a Lightning logger that writes into a run folder (or where MLflow's settings say)."""
    if kind not in LOGGERS:
        raise ArgumentError(f"unknown logger {kind!r}: choose one of {', '.join(LOGGERS)}.")
    try:
        if kind == "tensorboard":
            from lightning.fabric.loggers.tensorboard import TensorBoardLogger

            return TensorBoardLogger(root_dir=folder, name="tensorboard", version="")
        from lightning.pytorch.loggers import MLFlowLogger

        return MLFlowLogger(experiment_name="sacm", run_name=folder.name)
    except ModuleNotFoundError:
        raise ArgumentError(f"the {kind} logger needs `pip install 'sacm[loggers]'`.") from None


def seed_epoch(seed: int, epoch: int = 0, rank: int = 0) -> None:
    """Seed torch, NumPy and Python for one epoch (0: building the model, alike on all ranks).

    Random numbers are a function of seed, epoch and rank, so that a resumed run draws the same.
    """
    words = np.random.SeedSequence([seed, epoch, rank]).generate_state(3)
    torch.manual_seed(int(words[0]) << 31 | int(words[1]))
    np.random.seed(int(words[1]))
    random.seed(int(words[2]))


def derive_seed(seed: int, member: int) -> int:
    """The seed of a further network that a run trains, different for every run and network."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def environment() -> dict[str, Any]:
    """Versions, machine and git state, for a run's record."""
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "git": _git("rev-parse", "HEAD"),
        "git_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        command = ["git", *arguments]
        return subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=5
        ).strip()
    except (OSError, subprocess.SubprocessError):
        return None
