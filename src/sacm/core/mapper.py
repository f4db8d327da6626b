"""The mapper: scores of a batch to dropout rates."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.distributed import global_extremes, world_size
from sacm.core.validation import require_tensor, settings_of
from sacm.errors import ArgumentError

_MOMENTUM = 0.1  # weight of a new batch in the running range, as in batch normalisation


def normalise_scores(scores: Tensor, low: Tensor, high: Tensor, eps: float) -> Tensor:
    """`ŝ = (s - min) / (max - min)`, or 0.5 for all when `max - min <= eps`; `[B]`."""
    span = high - low
    flat = span <= eps
    return torch.where(flat, 0.5, (scores - low) / torch.where(flat, 1.0, span))


def map_rates(relative: Tensor, gamma: Tensor, p_min: float, p_max: float) -> Tensor:
    """`p = p_min + (p_max - p_min) tanh(ŝ softplus(gamma))`; `[B]`."""
    rates = p_min + (p_max - p_min) * torch.tanh(relative * F.softplus(gamma))
    # Rounding may step over the bounds by one unit in the last place.
    return rates.clamp(p_min, p_max)


class RateMapper(nn.Module):
    """Scores `[B]` to rates `[B]` inside `[p_min, p_max]`; one learnable scalar, gamma.

    `reliable` `[B]` (bool) marks the windows that count: the others get p_max and do not shift the
    range of the batch. `None` counts all.
    """

    low: Tensor
    high: Tensor

    def __init__(self, config: SACMConfig | None = None) -> None:
        super().__init__()
        self.config = settings_of(config)
        self.gamma = nn.Parameter(torch.tensor(float(self.config.gamma)))
        if self.config.score_range == "running":
            self.register_buffer("low", torch.tensor(float("nan")))
            self.register_buffer("high", torch.tensor(float("nan")))

    def forward(self, scores: Tensor, reliable: Tensor | None = None) -> Tensor:
        """Rates for the scores of one batch."""
        require_tensor("scores", scores)
        if scores.dim() != 1 or scores.shape[0] == 0:
            raise ArgumentError(f"scores must be a non-empty [B] tensor, got {list(scores.shape)}.")
        config = self.config
        low, high = self._range(scores, reliable)
        relative = normalise_scores(scores, low, high, config.eps)
        if config.score_range == "running":
            relative = relative.clamp(0, 1)
        rates = map_rates(relative, self.gamma.to(scores.dtype), config.p_min, config.p_max)
        return rates if reliable is None else torch.where(reliable, rates, config.p_max)

    def _range(self, scores: Tensor, reliable: Tensor | None) -> tuple[Tensor, Tensor]:
        low_of = high_of = scores
        if reliable is not None:
            low_of = torch.where(reliable, scores, torch.inf)
            high_of = torch.where(reliable, scores, -torch.inf)
        if self.config.global_batch and world_size() > 1:
            low, high = global_extremes(low_of, high_of)
        elif reliable is None:
            low, high = scores.aminmax()  # one operation, and one in the backward pass
        else:
            low, high = low_of.amin(), high_of.amax()
        if self.config.score_range == "batch":
            return low, high
        with torch.no_grad():
            counts = low <= high  # not so when no window of the batch is reliable
            for running, extreme in ((self.low, low), (self.high, high)):
                batch = extreme.to(running.dtype)
                known = torch.where(running.isnan(), batch, running)
                running.copy_(torch.where(counts, known.lerp(batch, _MOMENTUM), running))
        return self.low.to(scores.dtype, copy=True), self.high.to(scores.dtype, copy=True)
