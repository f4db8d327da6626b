"""A score of windows that sees what a spectrum cannot: held values, gaps, spikes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.scorer import ScorerOutput, SpectralScorer
from sacm.strategies.guard import fit_windows


def fit_guard(data: Any, window: int) -> nn.Module | None:
    """A guard of z-scored windows from the training rows, repaired; None if they are too few."""
    from sacm.quality.guard import Guard
    from sacm.quality.prepare import repair_for_training

    repaired = repair_for_training(data, Guard(window=None).fit(data)).data
    return fit_windows(repaired, data, window, 1.0)


class QualityScorer(nn.Module):
    """The spectral residual without scale, plus the share of values that a guard finds broken.

    Both lie between 0 and about 1 for each channel of a window. Windows are
    `[B, L, C]`, scores `[B]`.

    Args:
        channels: Number of channels `C`.
        config: Settings of the spectral part.
        guard: A fitted guard of windows.
    """

    def __init__(self, channels: int, config: SACMConfig, guard: nn.Module) -> None:
        super().__init__()
        self.spectral = SpectralScorer(channels, replace(config, scale="free"))
        self.guard = guard.requires_grad_(False)

    def forward(self, x: Tensor) -> ScorerOutput:
        """Score windows `[B, L, C]`; the learnable part is the spectral one."""
        with torch.no_grad():
            flags: Tensor = self.guard.inspect(x).flags  # type: ignore[operator]  # a WindowGuard
        result: ScorerOutput = self.spectral(x)
        broken = (flags > 0).to(result.channel_scores.dtype).mean(dim=1)  # [B, C]
        channel_scores = result.channel_scores + broken
        return result._replace(scores=channel_scores.mean(dim=-1), channel_scores=channel_scores)
