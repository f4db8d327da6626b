"""The method itself with its options and controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.registry import Registry
from sacm.strategies.base import SETS_RATES, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register

# Factories of modules, by the names that `sacm(scorer=…)` and `sacm(mapper=…)` take. A scorer maps
# windows [B, L, C] to scores [B]: within a batch a higher score gives a higher dropout rate. A
# mapper takes scores [B] and gives rates [B] in [config.p_min, config.p_max].
ScorerFactory = Callable[[int, SACMConfig], nn.Module]
MapperFactory = Callable[[SACMConfig], nn.Module]
scorers: Registry[ScorerFactory] = Registry("scorer")
mappers: Registry[MapperFactory] = Registry("mapper")
scorers.register("spectral")(SpectralScorer)
mappers.register("tanh")(RateMapper)


@register("sacm")
@dataclass(frozen=True)
class SACM(Strategy, SACMConfig):
    """Set each window's dropout rate by its own spectral residual (the method).

    The first options are those of `SACMConfig`.

    skip: A glob of dropout sites to leave ordinary, such as PatchTST's `network.head_dropout`.
    scorer: A registered scorer of windows.
    mapper: A registered map from scores to rates.
    score: What the scorer says (spectral), or the window's own deviation (amplitude; a control).
    rates: The rates that scores give (own), or a control: a random permutation within the batch
        (permuted), the batch's mean for every window (mean), or the reversed order, so that the
        most reliable window drops most (reversed).
    """

    roles: ClassVar[tuple[str, ...]] = (SETS_RATES,)

    skip: str = ""
    scorer: str = "spectral"
    mapper: str = "tanh"
    score: Literal["spectral", "amplitude"] = "spectral"
    rates: Literal["own", "permuted", "mean", "reversed"] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        # One spelling for one meaning: the dataclass is frozen, so it is set by this detour.
        object.__setattr__(self, "scorer", scorers.entry(self.scorer).name)
        object.__setattr__(self, "mapper", mappers.entry(self.mapper).name)
        if self.rates != "own" and self.mapper != "tanh":
            raise ArgumentError(f"sacm(rates={self.rates}) works with the mapper tanh alone.")
        if self.score != "spectral" and self.scorer != "spectral":
            raise ArgumentError(f"sacm(score={self.score}) works with the scorer spectral alone.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the layout probe runs on the first training batch."""
        config = SACMConfig(**{f.name: getattr(self, f.name) for f in fields(SACMConfig)})
        scorer = scorers.get(self.scorer)(context.channels, config)
        mapper = mappers.get(self.mapper)(config)
        if self.score == "amplitude":
            scorer = AmplitudeScorer()
        if self.rates != "own":
            mapper = RearrangedMapper(config, self.rates)
        skip = [self.skip] if self.skip else []
        return ModulatedRun(model, context, config=config, scorer=scorer, mapper=mapper, skip=skip)


class ModulatedRun(StrategyRun):
    """Attaches a modulator and reads rates off it; its scalars carry no weight decay."""

    def __init__(self, model: nn.Module, context: TrainingContext, **options: Any) -> None:
        self.modulator = attach(model, channels=context.channels, **options)
        self.scalars = list(self.modulator.parameters())

    @property
    def rates(self) -> Tensor | None:  # type: ignore[override]  # an attribute of the base
        return self.modulator.rates


class AmplitudeScorer(nn.Module):
    """Score a window by its own deviation: the mean over channels, without a spectrum."""

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B]`."""
        values = x.to(torch.promote_types(x.dtype, torch.float32))
        return values.std(dim=1, correction=0).mean(dim=-1)


class RearrangedMapper(RateMapper):
    """Map scores to rates as the method does, then rearrange them as `sacm(rates=kind)` says."""

    def __init__(self, config: SACMConfig, kind: str) -> None:
        super().__init__(config)
        self.kind = kind

    def forward(self, scores: Tensor) -> Tensor:
        """Scores `[B]` to rates `[B]`."""
        rates = super().forward(scores)
        if self.kind == "mean":
            return rates.mean().expand_as(rates)
        if self.kind == "permuted":
            return rates[torch.randperm(len(rates), device=rates.device)]
        order = rates.detach().argsort()  # the k-th lowest rate becomes the k-th highest
        return rates[order.flip(0)][order.argsort()]
