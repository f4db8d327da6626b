"""The mapper: scores of a batch to dropout rates."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from sacm.core.config import SACMConfig, check_config
from sacm.core.distributed import reduce_extremes
from sacm.errors import ArgumentError

_MOMENTUM = 0.1  # weight of a new batch in the running range, as in batch normalisation


def normalise_scores(scores: Tensor, low: Tensor, high: Tensor, eps: float) -> Tensor:
    """Return `ŝ = (s - min) / (max - min)` `[B]`, or 0.5 for all when `max - min <= eps`."""
    span = high - low
    flat = span <= eps
    # As `torch.where` would, with fewer operations here and in the backward pass.
    return ((scores - low) / span.masked_fill(flat, 1.0)).masked_fill(flat, 0.5)


def map_rates(relative: Tensor, gamma: Tensor, p_min: float, p_max: float) -> Tensor:
    """Return `p = p_min + (p_max - p_min) tanh(ŝ softplus(gamma))` `[B]`."""
    rates = p_min + (p_max - p_min) * torch.tanh(relative * F.softplus(gamma))
    # Rounding may step over the bounds by one unit in the last place.
    return rates.clamp(p_min, p_max)


class RateMapper(nn.Module):
    """Map unreliability scores `[B]` to dropout rates `[B]` inside `[p_min, p_max]`.

    It has one learnable scalar, gamma. Scores count relative to the other windows of the batch.

    Args:
        config: Settings; the paper's for None.

    Example:
        >>> mapper = RateMapper()
        >>> rates = mapper(torch.tensor([0.1, 0.2, 0.3]))
        >>> [round(rate, 3) for rate in rates.tolist()]
        [0.05, 0.309, 0.439]
    """

    low: Tensor
    high: Tensor

    def __init__(self, config: SACMConfig | None = None) -> None:
        super().__init__()
        self.config = check_config(config)
        self.gamma = nn.Parameter(torch.tensor(float(self.config.gamma)))
        if self.config.score_range == "running":
            self.register_buffer("low", torch.tensor(float("nan")))
            self.register_buffer("high", torch.tensor(float("nan")))

    def forward(self, scores: Tensor, reliable: Tensor | None = None) -> Tensor:
        """Return the dropout rates for the scores of one batch.

        Args:
            scores: `[B]`, higher is less reliable.
            reliable: Boolean `[B]`; windows marked False get `p_max` and do not shift the range of
                the batch. None counts all windows.

        Returns:
            Rates `[B]`.

        Raises:
            ArgumentError: `scores` is not a non-empty `[B]` tensor.
        """
        if not isinstance(scores, Tensor) or scores.dim() != 1 or scores.shape[0] == 0:
            given = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ArgumentError(f"scores must be a non-empty [B] torch tensor, got {given}.")
        config = self.config
        low_of = high_of = scores
        if reliable is not None:  # windows that are not never win a minimum or maximum
            low_of = torch.where(reliable, scores, torch.inf)
            high_of = torch.where(reliable, scores, -torch.inf)
        if config.global_batch and dist.is_available() and dist.is_initialized():
            low, high = reduce_extremes(low_of, high_of)
        elif reliable is None:
            low, high = scores.aminmax()  # one operation, and one in the backward pass
        else:
            low, high = low_of.amin(), high_of.amax()
        if config.score_range == "running":
            low, high = self._update_running_range(low, high)
        relative = normalise_scores(scores, low, high, config.eps)
        if config.score_range == "running":
            relative = relative.clamp(0, 1)
        rates = map_rates(relative, self.gamma.to(scores.dtype), config.p_min, config.p_max)
        return rates if reliable is None else torch.where(reliable, rates, config.p_max)

    @torch.no_grad()
    def _update_running_range(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Mix the range of a batch into the running one; returns copies of the running range."""
        usable = low <= high  # False when no window of the batch is reliable
        for running, extreme in ((self.low, low), (self.high, high)):
            batch = extreme.to(running.dtype)
            known = torch.where(running.isnan(), batch, running)
            running.copy_(torch.where(usable, known.lerp(batch, _MOMENTUM), running))
        return self.low.to(low.dtype, copy=True), self.high.to(high.dtype, copy=True)
