"""What is compared: the method, its ablations, and the controlled alternatives."""

from __future__ import annotations

from sacm.strategies import (  # noqa: F401  (importing a file registers what is in it)
    adaptive,
    fixed,
    hard_denoise,
    mappers,
    raw,
    scorers,
    selective,
)
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.describe import describe
from sacm.strategies.registry import canonical, names, parse, register

__all__ = [
    "Strategy",
    "StrategyRun",
    "TrainingContext",
    "canonical",
    "describe",
    "mappers",
    "names",
    "parse",
    "register",
    "scorers",
]
