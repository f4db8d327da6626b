"""Huber's loss: large residuals of a forecast count by their size, not by their square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.strategies.base import REPLACES_LOSS, Step, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName

_TO_DEVIATION = 1.4826  # median absolute residual to standard deviation, for normal residuals
_SMALLEST = 1e-6  # keeps the scale of residuals that are all zero positive


def huber(residual: Tensor, limit: Tensor | float) -> Tensor:
    """`r² / 2` up to the limit, then straight: `limit (|r| - limit / 2)`; any shape."""
    size = residual.abs()
    return torch.where(size <= limit, 0.5 * size.square(), limit * (size - 0.5 * limit))


def residual_scale(residual: Tensor) -> Tensor:
    """The deviation of residuals by their median absolute value, without gradient."""
    return _TO_DEVIATION * residual.detach().float().abs().median().clamp_min(_SMALLEST)


@dataclass(frozen=True)
class Huber(Strategy):
    """Count small residuals by their square and large ones by their size (forecasting).

    Source: P. J. Huber, Robust estimation of a location parameter, 1964.

    limit: Where the square ends, in deviations of the residuals.
    scale: The deviation is that of the batch's residuals by their median (mad), or 1, which is the
        training deviation of the channel (fixed).
    """

    name: ClassVar[str] = "huber"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)
    roles: ClassVar[tuple[str, ...]] = (REPLACES_LOSS,)

    limit: float = 1.345
    scale: Literal["mad", "fixed"] = "mad"

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ArgumentError(f"huber(limit=…) must be positive, got {self.limit}.")
        if self.scale not in ("mad", "fixed"):
            raise ArgumentError(f"huber(scale=…) must be mad or fixed, got {self.scale!r}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Replace the loss."""
        return _HuberRun(self)


class _HuberRun(StrategyRun):
    """Huber's loss at work."""

    def __init__(self, strategy: Huber) -> None:
        self.strategy = strategy

    def loss(self, step: Step) -> Tensor:
        forecast = step.answer()
        residual = forecast - step.batch.y
        limit: Tensor | float = self.strategy.limit
        if self.strategy.scale == "mad":
            limit = limit * residual_scale(residual).to(residual.dtype)
        return step.mean(huber(residual, limit), forecast)
