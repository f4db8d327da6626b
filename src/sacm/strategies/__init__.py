"""What a training run does for robustness: the method, its controls, and the alternatives."""

from __future__ import annotations

from sacm.strategies import (  # noqa: F401  (importing a file registers what is in it)
    fixed,
    guard,
    labels,
    race,
    sacm,
)
from sacm.strategies.base import Prepared, Step, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import canonical, describe, names, parse, register
from sacm.strategies.sacm import mappers, scorers

__all__ = [
    "Prepared",
    "Step",
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
