"""The method itself, and the one learned rate for all windows that it is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.strategies import mappers, scorers
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register

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


@register("sacm")
@dataclass(frozen=True)
class SACM(Strategy, SACMConfig):
    """Set each window's dropout rate by its own spectral residual (the method).

    p_min: Lowest dropout rate.
    p_max: Highest dropout rate.
    alpha: Sharpness of the spectral mask at the start; learnable.
    gamma: Steepness of the map from scores to rates at the start; learnable.
    sfm_weight: Weight of spectral flatness in the threshold at the start; learnable, by channel.
    sfm_bias: Offset of the threshold at the start; learnable, by channel.
    detrend: Detrending before the spectrum: ols, endpoint or none.
    log_norm: Normalise the log amplitudes of each window; false takes them as they are.
    sfm_anchor: Let the threshold follow spectral flatness; false leaves its offset alone.
    eps: Guards divisions; ranges of scores or amplitudes up to it count as flat.
    score_range: Normalise scores by the batch's own range (batch) or a running one (running).
    global_batch: With several processes, the batch is that of all of them.
    nonfinite: A window with NaN makes all rates NaN (propagate) or gets p_max alone (max_rate).
    skip: A glob of dropout sites to leave ordinary, such as PatchTST's `network.head_dropout`.
    scorer: A registered scorer of windows.
    mapper: A registered map from scores to rates.
    """

    skip: str = ""
    scorer: str = scorers.DEFAULT
    mapper: str = mappers.DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        # One spelling for one meaning: the dataclass is frozen, so it is set by this detour.
        object.__setattr__(self, "scorer", scorers.SCORERS.spelling(self.scorer))
        object.__setattr__(self, "mapper", mappers.MAPPERS.spelling(self.mapper))

    def config(self) -> SACMConfig:
        """Give the settings of the method alone."""
        return SACMConfig(**{f.name: getattr(self, f.name) for f in fields(SACMConfig)})

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the layout probe runs on the first training batch."""
        config = self.config()
        modulator = attach(
            model,
            channels=context.channels,
            config=config,
            scorer=scorers.build(self.scorer, context.channels, config),
            mapper=mappers.build(self.mapper, config),
            skip=[self.skip] if self.skip else [],
        )
        return ModulatedRun(modulator)


@register("learned_global")
@dataclass(frozen=True)
class LearnedGlobal(Strategy):
    """Learn one rate for all windows and sites, with the same straight-through masks as sacm."""

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
