"""Checks for backbones, strategies and scorers; the package's own are tested with the same ones."""

from __future__ import annotations

from sacm.testing.backbones import check_backbone
from sacm.testing.strategies import check_scorer, check_strategy

__all__ = ["check_backbone", "check_scorer", "check_strategy"]
