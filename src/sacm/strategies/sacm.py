"""The method itself, with its options and its controls."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.strategies import mappers, scorers
from sacm.strategies.base import SETS_RATES, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register

Rearrangement = Literal["permuted", "mean", "reversed"]


class RearrangedMapper(RateMapper):
    """Map scores to rates as the method does, then give the rates to other windows.

    Args:
        config: Settings of the mapper.
        kind: ``"permuted"``: a random permutation within the batch. ``"mean"``: every window gets
            the mean rate. ``"reversed"``: the window with the k-th lowest rate gets the k-th
            highest one.

    Example:
        >>> mapper = RearrangedMapper(SACMConfig(), "reversed")
        >>> [round(rate, 2) for rate in mapper(torch.tensor([0.0, 0.5, 1.0])).tolist()]
        [0.44, 0.31, 0.05]
    """

    def __init__(self, config: SACMConfig, kind: Rearrangement) -> None:
        super().__init__(config)
        self.kind = kind

    def forward(self, scores: Tensor, reliable: Tensor | None = None) -> Tensor:
        """Return rates `[B]` for scores `[B]`."""
        rates = super().forward(scores, reliable)
        if self.kind == "mean":
            return rates.mean().expand_as(rates)
        if self.kind == "permuted":
            return rates[torch.randperm(len(rates), device=rates.device)]
        order = rates.detach().argsort()
        return rates[order.flip(0)][order.argsort()]


class AmplitudeScorer(nn.Module):
    """Score a window by its own deviation: the mean over channels, without a spectrum."""

    def forward(self, x: Tensor) -> Tensor:
        """Return scores `[B]` for windows `[B, L, C]`."""
        values = x.to(torch.promote_types(x.dtype, torch.float32))
        return values.std(dim=1, correction=0).mean(dim=-1)


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
    scale: Residuals count in the units of the windows (data), or over the channel's deviation in
        the window, so that amplitude hardly counts (free).
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
    scorer: str = scorers.DEFAULT
    mapper: str = mappers.DEFAULT
    score: Literal["spectral", "amplitude"] = "spectral"
    rates: Literal["own", "permuted", "mean", "reversed"] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        # One spelling for one meaning: the dataclass is frozen, so it is set by this detour.
        object.__setattr__(self, "scorer", scorers.SCORERS.spelling(self.scorer))
        object.__setattr__(self, "mapper", mappers.MAPPERS.spelling(self.mapper))
        if self.rates != "own" and self.mapper != mappers.DEFAULT:
            raise ArgumentError(f"sacm(rates={self.rates}) works with the mapper tanh alone.")
        if self.score != "spectral" and self.scorer != scorers.DEFAULT:
            raise ArgumentError(f"sacm(score={self.score}) works with the scorer spectral alone.")

    def config(self) -> SACMConfig:
        """Give the settings of the method alone."""
        return SACMConfig(**{f.name: getattr(self, f.name) for f in fields(SACMConfig)})

    def make_scorer(self, channels: int) -> nn.Module:
        """Make the scorer that is attached."""
        if self.score == "amplitude":
            return AmplitudeScorer()
        return scorers.SCORERS.get(self.scorer)(channels, self.config())

    def make_mapper(self) -> nn.Module:
        """Make the mapper that is attached."""
        if self.rates != "own":
            return RearrangedMapper(self.config(), self.rates)
        return mappers.MAPPERS.get(self.mapper)(self.config())

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the layout probe runs on the first training batch."""
        modulator = attach(
            model,
            channels=context.channels,
            config=self.config(),
            scorer=self.make_scorer(context.channels),
            mapper=self.make_mapper(),
            skip=[self.skip] if self.skip else [],
        )
        return ModulatedRun(modulator)


class ModulatedRun(StrategyRun):
    """Reads rates off the modulator; its scalars carry no weight decay."""

    def __init__(self, modulator: CapacityModulator) -> None:
        self.modulator = modulator
        self.scalars = list(modulator.parameters())

    @property
    def rates(self) -> Tensor | None:  # type: ignore[override]  # an attribute of the base
        return self.modulator.rates
