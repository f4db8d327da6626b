"""Controls of the method: one learned rate for all windows, and a spectral filter of the input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.strategies.base import SETS_RATES, Strategy, StrategyRun, TrainingContext
from sacm.strategies.sacm import AmplitudeScorer, ModulatedRun


@dataclass(frozen=True)
class LearnedGlobal(Strategy):
    """Learn one rate for all windows and sites, with the same straight-through masks as sacm."""

    name: ClassVar[str] = "learned_global"
    roles: ClassVar[tuple[str, ...]] = (SETS_RATES,)

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Attach; the mapper only counts the scores, which can be any."""
        return ModulatedRun(model, context, scorer=AmplitudeScorer(), mapper=GlobalRate())


class GlobalRate(nn.Module):
    """`p = p_min + (p_max - p_min) sigmoid(l)`, the same for every window."""

    low, high, first = SACMConfig.p_min, SACMConfig.p_max, 0.1

    def __init__(self) -> None:
        super().__init__()
        share = (self.first - self.low) / (self.high - self.low)
        self.logit = nn.Parameter(torch.tensor(math.log(share / (1 - share))))

    def forward(self, scores: Tensor) -> Tensor:
        """Scores `[B]` are only counted."""
        return (self.low + (self.high - self.low) * torch.sigmoid(self.logit)).expand_as(scores)


@dataclass(frozen=True)
class HardDenoise(Strategy):
    """Keep a share of the Fourier coefficients of every window and channel, in all phases.

    keep: The share of coefficients that stay, in (0, 1].
    kind: Which ones stay: those of the largest amplitudes, or of the lowest frequencies.
    """

    name: ClassVar[str] = "hard_denoise"

    keep: float = 0.1
    kind: Literal["largest", "lowpass"] = "largest"

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1:
            raise ArgumentError(f"hard_denoise(keep=…) needs a share in (0, 1], got {self.keep}.")

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The filtered windows `[B, L, C]`."""
        with torch.autocast(x.device.type, enabled=False):
            spectrum = torch.fft.rfft(x.float() if x.itemsize < 4 else x, dim=1)  # [B, K, C]
            count = max(1, round(self.keep * spectrum.shape[1]))
            kept = torch.zeros_like(spectrum)
            if self.kind == "lowpass":
                kept[:, :count] = spectrum[:, :count]
            else:
                largest = spectrum.abs().topk(count, dim=1).indices
                kept.scatter_(1, largest, spectrum.gather(1, largest))
            return torch.fft.irfft(kept, n=x.shape[1], dim=1).to(x.dtype)
