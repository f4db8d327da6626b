"""What is compared: the method, its ablations, and the controlled alternatives."""

from __future__ import annotations

from sacm.strategies import (  # noqa: F401  (importing a file registers its strategies)
    adaptive,
    fixed,
    hard_denoise,
    raw,
    selective,
)
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import canonical, parse, strategy

__all__ = [
    "Strategy",
    "StrategyRun",
    "TrainingContext",
    "canonical",
    "parse",
    "strategy",
]
