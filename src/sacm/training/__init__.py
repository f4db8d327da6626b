"""Runs: training, resuming, and what is left on disk."""

from __future__ import annotations

from sacm.training.run import Run
from sacm.training.trainer import Hardware, train

__all__ = ["Hardware", "Run", "train"]
