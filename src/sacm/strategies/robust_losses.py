"""Huber's and Tukey's losses: large residuals of a forecast pull less, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.types import TaskName

LossScale = Literal["mad", "fixed"]
_TO_DEVIATION = 1.4826  # median absolute residual to standard deviation, for normal residuals
_SMALLEST = 1e-6  # keeps the scale of residuals that are all zero positive


def huber(residual: Tensor, limit: Tensor | float) -> Tensor:
    """`r² / 2` up to the limit, then straight: `limit (|r| - limit / 2)`; any shape."""
    size = residual.abs()
    return torch.where(size <= limit, 0.5 * size.square(), limit * (size - 0.5 * limit))


def tukey(residual: Tensor, limit: Tensor | float) -> Tensor:
    """`limit² / 6 (1 - (1 - (r / limit)²)³)`, and constant beyond the limit; any shape."""
    inside = (1 - (residual / limit).square()).clamp_min(0)
    return limit * limit / 6 * (1 - inside**3)


def residual_scale(residual: Tensor) -> Tensor:
    """The deviation of residuals by their median absolute value, without gradient."""
    return _TO_DEVIATION * residual.detach().float().abs().median().clamp_min(_SMALLEST)


@dataclass(frozen=True)
class _RobustLoss(Strategy):
    """What the two have in common: a limit in deviations of the residuals, or in z-scores."""

    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    limit: float = 1.0
    scale: LossScale = "mad"

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ArgumentError(f"{self.name}(limit=…) must be positive, got {self.limit}.")
        if self.scale not in ("mad", "fixed"):
            raise ArgumentError(f"{self.name}(scale=…) must be mad or fixed, got {self.scale!r}.")

    def find_limit(self, residual: Tensor) -> Tensor | float:
        """The limit in the units of the residuals."""
        if self.scale == "fixed":
            return self.limit
        return self.limit * residual_scale(residual).to(residual.dtype)


@register("huber")
@dataclass(frozen=True)
class Huber(_RobustLoss):
    """Count small residuals by their square and large ones by their size (forecasting).

    Source: P. J. Huber, Robust estimation of a location parameter, 1964.

    limit: Where the square ends, in deviations of the residuals.
    scale: The deviation is that of the batch's residuals by their median (mad), or 1, which is the
        training deviation of the channel (fixed).
    """

    limit: float = 1.345

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Replace the loss."""
        return _HuberRun(self)


class _HuberRun(StrategyRun):
    """Huber's loss at work."""

    def __init__(self, strategy: Huber) -> None:
        self.strategy = strategy

    def losses(self, answer: Tensor, target: Tensor) -> Tensor:
        residual = answer - target
        return huber(residual, self.strategy.find_limit(residual))


@register("tukey")
@dataclass(frozen=True)
class Tukey(_RobustLoss):
    """Count small residuals by their square; beyond a limit nothing is learnt from (forecasting).

    Source: A. E. Beaton and J. W. Tukey, The fitting of power series, 1974 (the biweight).

    limit: Where learning ends, in deviations of the residuals.
    scale: The deviation is that of the batch's residuals by their median (mad), or 1, which is the
        training deviation of the channel (fixed).
    """

    limit: float = 4.685

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Replace the loss."""
        return _TukeyRun(self)


class _TukeyRun(StrategyRun):
    """Tukey's loss at work."""

    def __init__(self, strategy: Tukey) -> None:
        self.strategy = strategy

    def losses(self, answer: Tensor, target: Tensor) -> Tensor:
        residual = answer - target
        return tukey(residual, self.strategy.find_limit(residual))
