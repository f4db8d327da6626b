"""Hard spectral filtering of the input before the backbone sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy
from sacm.strategies.registry import register


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
