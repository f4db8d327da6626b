"""Channels that are rougher than training windows ever were."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.quality.windows.folds import Fold, steady_quantile
from sacm.quality.windows.parts import Part
from sacm.quality.windows.spikes import lower_median

FALSE_SHARE = 5e-3
MEDIAN_OF_NORMAL = 0.6745
CURVATURE_OF_NOISE = 6.0
"""Variance of `x[t-1] - 2 x[t] + x[t+1]` for white noise of variance 1."""


class WindowNoise(Part):
    """Estimates the variance of noise that was added to a channel of a window.

    Buffers: top [C], a roughness that training windows pass seldom; middle [C], their median.
    """

    top: Tensor
    middle: Tensor

    def suspect(self, z: Tensor) -> Tensor:
        """Which channels of [B, L, C] are too rough, bool [B, C]; cheaper than the estimate."""
        curvature = absolute_curvature(z)
        limit = (self.top * CURVATURE_OF_NOISE).sqrt() * MEDIAN_OF_NORMAL
        # The lower median lies above a limit if at most (n - 1) // 2 values do not.
        below = (curvature <= limit).sum(1)
        return below <= (curvature.shape[1] - 1) // 2

    def variance(self, z: Tensor) -> Tensor:
        """Variance of the added noise, [B, C]; 0 in channels that are not too rough."""
        excess = (roughness(z) - self.middle).clamp_min(0.0)
        return torch.where(self.suspect(z), excess, 0.0)


def absolute_curvature(z: Tensor) -> Tensor:
    """Absolute second differences, [B, L - 2, C]."""
    return (z[:, 2:] - 2 * z[:, 1:-1] + z[:, :-2]).abs()


def roughness(z: Tensor) -> Tensor:
    """Variance of white noise with the median curvature of each channel, [B, L, C] to [B, C]."""
    return (lower_median(absolute_curvature(z)) / MEDIAN_OF_NORMAL) ** 2 / CURVATURE_OF_NOISE


def learn_noise(windows: Tensor, folds: list[Fold], *, sensitivity: float) -> WindowNoise:
    """Learn the limits from repaired training windows [N, L, C]."""
    rough = roughness(windows)
    share = min(0.5, FALSE_SHARE * sensitivity)
    top = torch.from_numpy(steady_quantile(rough.numpy(), share, folds))
    return WindowNoise(top=top, middle=rough.median(0).values)
