"""The method itself, and the one learned rate for all windows that it is compared with."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import QuantileMapper
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.strategies import mappers, scorers
from sacm.strategies.base import (
    SETS_RATES,
    Loader,
    Prepared,
    Strategy,
    StrategyRun,
    TrainingContext,
)
from sacm.strategies.controls import REARRANGEMENTS, AmplitudeScorer, RearrangedMapper
from sacm.strategies.quality_score import QualityScorer, fit_guard
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
    scale: Residuals count in the units of the windows (data), or over the channel's deviation in
        the window, so that amplitude hardly counts (free).
    skip: A glob of dropout sites to leave ordinary, such as PatchTST's `network.head_dropout`.
    scorer: A registered scorer of windows.
    mapper: A registered map from scores to rates.
    calibration: The range of scores is that of the batch (batch), or goes from the 5 % to the 95 %
        quantile of all training windows, found anew before every epoch (quantiles).
    per_channel: Give every channel a rate of its own where activations keep channels apart.
    score: What the scorer says (spectral), or the residual without scale plus the share of values
        that a guard finds broken (quality; for forecasting alone), or the window's own deviation
        (amplitude; a control).
    rates: The rates that scores give (own), or a control: dealt out at random within the batch
        (permuted), the batch's mean for every window (mean), or in reversed order, so that the most
        reliable window drops most (reversed).
    """

    roles: ClassVar[tuple[str, ...]] = (SETS_RATES,)

    skip: str = ""
    scorer: str = scorers.DEFAULT
    mapper: str = mappers.DEFAULT
    calibration: Literal["batch", "quantiles"] = "batch"
    per_channel: bool = False
    score: Literal["spectral", "quality", "amplitude"] = "spectral"
    rates: Literal["own", "permuted", "mean", "reversed"] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        # One spelling for one meaning: the dataclass is frozen, so it is set by this detour.
        object.__setattr__(self, "scorer", scorers.SCORERS.spelling(self.scorer))
        object.__setattr__(self, "mapper", mappers.MAPPERS.spelling(self.mapper))
        if self.calibration not in ("batch", "quantiles"):
            raise ArgumentError(
                f"sacm(calibration=…) must be batch or quantiles, got {self.calibration!r}."
            )
        if self.score not in ("spectral", "quality", "amplitude"):
            raise ArgumentError(
                f"sacm(score=…) must be spectral, quality or amplitude, got {self.score!r}."
            )
        if self.rates not in ("own", *REARRANGEMENTS):
            raise ArgumentError(
                f"sacm(rates=…) must be own, {', '.join(REARRANGEMENTS)}, got {self.rates!r}."
            )
        if self.rates != "own" and (
            self.calibration != "batch" or self.mapper != mappers.DEFAULT or self.per_channel
        ):
            raise ArgumentError(
                f"sacm(rates={self.rates}) works with calibration=batch, the mapper tanh and one "
                "rate a window alone."
            )
        if self.calibration == "quantiles" and self.mapper != mappers.DEFAULT:
            raise ArgumentError("sacm(calibration=quantiles) works with the mapper tanh alone.")
        if self.score != "spectral" and self.scorer != scorers.DEFAULT:
            raise ArgumentError(f"sacm(score={self.score}) works with the scorer spectral alone.")

    def config(self) -> SACMConfig:
        """Give the settings of the method alone."""
        return SACMConfig(**{f.name: getattr(self, f.name) for f in fields(SACMConfig)})

    def check_task(self, task: str) -> None:
        """Refuse a score that sees broken values in tasks whose windows have no guard."""
        if self.score == "quality" and task != "forecasting":
            raise ArgumentError(f"sacm(score=quality) is for forecasting, not for {task}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Fit a guard of windows where the score needs one; the data stay as they are."""
        if self.score != "quality":
            return Prepared(data, self)
        guard = fit_guard(data, window)
        fitted = FittedSACM(**{f.name: getattr(self, f.name) for f in fields(self)}, guard=guard)
        note = "the series is too short to find broken values in: the score is spectral alone."
        return Prepared(data, fitted, (note,) if guard is None else ())

    def make_scorer(self, channels: int) -> nn.Module:
        """The scorer that is attached."""
        if self.score == "amplitude":
            return AmplitudeScorer()
        return scorers.build(self.scorer, channels, self.config())

    def make_mapper(self) -> nn.Module:
        """The mapper that is attached."""
        if self.calibration == "quantiles":
            return QuantileMapper(self.config())
        if self.rates != "own":
            return RearrangedMapper(self.config(), self.rates)
        return mappers.build(self.mapper, self.config())

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the layout probe runs on the first training batch."""
        modulator = attach(
            model,
            channels=context.channels,
            config=self.config(),
            scorer=self.make_scorer(context.channels),
            mapper=self.make_mapper(),
            per_channel=self.per_channel,
            skip=[self.skip] if self.skip else [],
        )
        if self.calibration == "quantiles":
            return CalibratedRun(modulator, context.train)
        return ModulatedRun(modulator)


@dataclass(frozen=True)
class FittedSACM(SACM):
    """The method with a guard of windows, fitted on training rows."""

    guard: nn.Module | None = None

    def make_scorer(self, channels: int) -> nn.Module:
        """The spectral score without scale, with what the guard finds."""
        if self.guard is None:
            return super().make_scorer(channels)
        return QualityScorer(channels, self.config(), copy.deepcopy(self.guard))


class CalibratedRun(ModulatedRun):
    """Scores all training windows before every epoch, for the range of the mapper."""

    def __init__(self, modulator: CapacityModulator, train: Loader) -> None:
        super().__init__(modulator)
        self.train = train

    @torch.no_grad()
    def begin_epoch(self, epoch: int) -> None:
        device = next(self.modulator.parameters()).device
        found = []
        for batch in self.train:
            result = self.modulator.scorer(batch.x.to(device))
            name = "channel_scores" if self.modulator.per_channel else "scores"
            found.append(getattr(result, name, result).flatten())
        assert isinstance(self.modulator.mapper, QuantileMapper)
        self.modulator.mapper.calibrate(torch.cat(found))


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
