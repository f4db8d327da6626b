"""What is compared: the method, its ablations, and the controlled alternatives."""

from __future__ import annotations

from sacm.strategies import (  # noqa: F401  (importing a file registers what is in it)
    adaptive,
    expose,
    fixed,
    guard,
    hard_denoise,
    mappers,
    oracle,
    raw,
    scorers,
    selective,
    weight,
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
