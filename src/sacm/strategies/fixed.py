"""Dropout as it is, and one rate for every site and window."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@register("raw")
@dataclass(frozen=True)
class Raw(Strategy):
    """Leave the backbone as it is, with its own dropout rates."""


@register("fixed")
@dataclass(frozen=True)
class Fixed(Strategy):
    """Set every dropout module of the model to one rate, whatever its own rate was.

    p: The rate, in [0, 1).
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise ArgumentError(f"fixed(p) needs a rate in [0, 1), got {self.p}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        for module in model.modules():
            if isinstance(module, _DROPOUTS):
                module.p = self.p
        return StrategyRun()
