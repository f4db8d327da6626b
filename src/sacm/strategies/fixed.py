"""Dropout as it is, one rate for every site and window, and a spectral filter of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

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


@register("hard_denoise")
@dataclass(frozen=True)
class HardDenoise(Strategy):
    """Keep a share of the Fourier coefficients of every window and channel, in all phases.

    keep: The share of coefficients that stay, in (0, 1].
    kind: Which ones stay: those of the largest amplitudes, or of the lowest frequencies.
    """

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
