"""The method itself, and the one learned rate for all windows that it is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import strategy

_LOW, _HIGH = SACMConfig.p_min, SACMConfig.p_max
_INITIAL = 0.1


class ModulatedRun(StrategyRun):
    """Reads rates off the modulator; its scalars carry no weight decay."""

    def __init__(self, modulator: CapacityModulator) -> None:
        self.modulator = modulator

    def scalars(self) -> list[nn.Parameter]:
        return list(self.modulator.parameters())

    def rates(self) -> Tensor | None:
        return self.modulator.rates


@strategy("sacm")
@dataclass(frozen=True)
class SACM(Strategy, SACMConfig):
    """Rates from each window's own spectral residual; takes every setting of `SACMConfig`.

    skip: a glob of dropout sites to leave ordinary, such as PatchTST's `network.head_dropout`.
    """

    skip: str = ""

    def config(self) -> SACMConfig:
        """The settings of the method alone."""
        return SACMConfig(**{f.name: getattr(self, f.name) for f in fields(SACMConfig)})

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the layout probe runs on the first training batch."""
        skip = [self.skip] if self.skip else []
        return ModulatedRun(
            attach(model, channels=context.channels, config=self.config(), skip=skip)
        )


@strategy("learned_global")
@dataclass(frozen=True)
class LearnedGlobal(Strategy):
    """One learnable rate shared by all windows and sites, with the same straight-through masks."""

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach, with a constant in place of scorer and mapper."""
        modulator = attach(model, channels=context.channels, scorer=ConstantScore())
        modulator.mapper = GlobalRate().to(next(model.parameters()).device)
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
