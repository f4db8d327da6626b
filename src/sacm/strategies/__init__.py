"""What is compared: the method, its ablations, and the controlled alternatives."""

from __future__ import annotations

from sacm.strategies import (  # noqa: F401  (importing a file registers what is in it)
    adaptive,
    augment,
    bottleneck,
    co_teaching,
    ema,
    ensemble,
    expose,
    fixed,
    gce,
    guard,
    hard_denoise,
    learned_dropout,
    loe,
    mappers,
    oracle,
    pgd,
    raw,
    reld,
    robust_losses,
    robust_tsf,
    scorers,
    selective,
    smoothing,
    trim,
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
