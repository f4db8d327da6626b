"""Runs: training, resuming, and what is left on disk."""

from sacm.training.hardware import Hardware
from sacm.training.run import Run
from sacm.training.trainer import train

__all__ = ["Hardware", "Run", "train"]
