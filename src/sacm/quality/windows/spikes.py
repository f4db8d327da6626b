"""Single steps far from the median of the five steps around them."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.quality.windows.folds import steady_quantile
from sacm.quality.windows.parts import Part, any_in_window, on_windows

FALSE_SHARE = 1e-4
DEVIATIONS = 6.0
TO_DEVIATION = 1.4826


class Spikes(Part):
    """Flags steps whose distance from the local median is rare in training and large in its window.

    Buffers: top [C], a distance that training rows pass seldom; middle [C], their median distance.
    """

    top: Tensor
    middle: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Flags [B, L, C] for complete z-scores of the same shape."""
        distance = (z - median_of_five(z)).abs()
        far = distance > self.top
        return on_windows(any_in_window(far), self._confirm, far, distance)

    def _confirm(self, far: Tensor, distance: Tensor) -> Tensor:
        """Keep the steps that stand out in their own window too."""
        usual = torch.maximum(lower_median(distance), self.middle)
        return far & (distance > DEVIATIONS * TO_DEVIATION * usual.unsqueeze(1))


def median_of_five(z: Tensor) -> Tensor:
    """Median of every step of [B, L, C] and two on either side; the ends are repeated."""
    padded = torch.cat([z[:, :1], z[:, :1], z, z[:, -1:], z[:, -1:]], 1)
    a, b, c, d, e = (padded[:, i : i + z.shape[1]] for i in range(5))
    # Without the smallest and the largest of four, the median of five is that of the other three.
    low = torch.maximum(torch.minimum(a, b), torch.minimum(c, d))
    high = torch.minimum(torch.maximum(a, b), torch.maximum(c, d))
    return torch.maximum(torch.minimum(low, high), torch.minimum(torch.maximum(low, high), e))


def lower_median(values: Tensor) -> Tensor:
    """The lower median over steps, [B, L, C] to [B, C], by sorting, which every graph knows."""
    return values.sort(1).values[:, (values.shape[1] - 1) // 2]


def learn_spikes(windows: Tensor, *, sensitivity: float) -> Spikes:
    """Learn the limits from repaired training windows [N, L, C]."""
    distance = (windows - median_of_five(windows)).abs()
    share = min(0.5, FALSE_SHARE * sensitivity)
    # A window of more turbulent times has its own scale, so these limits need not foresee change.
    top = torch.from_numpy(steady_quantile(distance.numpy(), share, []))
    return Spikes(top=top, middle=lower_median(distance).median(0).values)
