"""One learned dropout rate for all windows, which the method is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.strategies.base import SETS_RATES, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.strategies.sacm import ModulatedRun

_LOW, _HIGH = SACMConfig.p_min, SACMConfig.p_max
_INITIAL = 0.1


@register("learned_global")
@dataclass(frozen=True)
class LearnedGlobal(Strategy):
    """Learn one rate for all windows and sites, with the same straight-through masks as sacm."""

    roles: ClassVar[tuple[str, ...]] = (SETS_RATES,)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach, with a constant in place of scorer and mapper."""
        modulator = attach(
            model, channels=context.channels, scorer=ConstantScore(), mapper=GlobalRate()
        )
        return ModulatedRun(modulator)


class ConstantScore(nn.Module):
    """Every window scores 0."""

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B]`."""
        return x.new_zeros(x.shape[0], dtype=torch.promote_types(x.dtype, torch.float32))


class GlobalRate(nn.Module):
    """`p = .05 + .45 sigmoid(l)`, the same for every window: between the method's own bounds."""

    def __init__(self) -> None:
        super().__init__()
        share = (_INITIAL - _LOW) / (_HIGH - _LOW)
        self.logit = nn.Parameter(torch.tensor(math.log(share / (1 - share))))

    def forward(self, scores: Tensor, reliable: Tensor | None = None) -> Tensor:
        """Scores `[B]` are only counted."""
        return (_LOW + (_HIGH - _LOW) * torch.sigmoid(self.logit)).expand_as(scores)
