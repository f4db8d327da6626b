"""What finished runs are tested by besides their own test."""

from __future__ import annotations

from sacm.experiments.checks import (  # noqa: F401  (importing a file registers what is in it)
    faults,
    last_epoch,
    random_scores,
)
from sacm.experiments.checks.registry import CHECKS, Check

__all__ = ["CHECKS", "Check"]
