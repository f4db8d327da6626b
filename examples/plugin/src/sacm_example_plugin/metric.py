"""`hit_rate`: how often the forecast comes near."""

from __future__ import annotations

from torch import Tensor

from sacm.metrics import register

NEAR = 0.5  # standard deviations


@register("hit_rate", task="forecasting", label="hit rate", higher_is_better=True, share=True)
def hit_rate(prediction: Tensor, target: Tensor, observed: Tensor) -> Tensor:
    """Share of a window's observed targets within half a standard deviation, `[N]`."""
    hits = ((prediction - target).abs() <= NEAR) & observed
    return hits.sum(dim=(1, 2)) / observed.sum(dim=(1, 2)).clamp_min(1)
