"""Controls of the method: its rates without its adaptivity, its map without its spectrum."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper

Rearrangement = Literal["permuted", "mean", "reversed"]
REARRANGEMENTS: tuple[Rearrangement, ...] = ("permuted", "mean", "reversed")


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
        [0.39, 0.26, 0.05]
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
