"""Runs: training, resuming, and what is left on disk.

`train` and `Hardware` load on first use: opening a run needs nothing of what training needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sacm.training.run import Run

if TYPE_CHECKING:
    from sacm.training.hardware import Hardware
    from sacm.training.trainer import train

__all__ = ["Hardware", "Run", "train"]

_LAZY = {"Hardware": "sacm.training.hardware", "train": "sacm.training.trainer"}


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'sacm.training' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
