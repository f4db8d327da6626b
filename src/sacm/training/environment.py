"""Where and with what a run was made."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from typing import Any

import torch

_PACKAGES = ("sacm", "torch", "numpy", "lightning", "scipy", "scikit-learn")


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
        answer = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
