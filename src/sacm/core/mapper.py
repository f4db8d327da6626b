"""The mapper: scores of a batch to dropout rates."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sacm.core.config import SACMConfig, check_config
from sacm.errors import ArgumentError


class RateMapper(nn.Module):
    """Map unreliability scores `[B]` to dropout rates `[B]` inside `[p_min, p_max]`.

    It has one learnable scalar, gamma. Scores count relative to the other windows of the batch, and
    under torch.distributed to those of all processes.

    Args:
        config: Settings; the paper's for None.

    Example:
        >>> mapper = RateMapper()
        >>> rates = mapper(torch.tensor([0.1, 0.2, 0.3]))
        >>> [round(rate, 3) for rate in rates.tolist()]
        [0.05, 0.309, 0.439]
    """

    def __init__(self, config: SACMConfig | None = None) -> None:
        super().__init__()
        self.config = check_config(config)
        self.gamma = nn.Parameter(torch.tensor(float(self.config.gamma)))

    def forward(self, scores: Tensor) -> Tensor:
        """Return the rates `[B]` of a batch from its scores `[B]`, higher is less reliable."""
        if not isinstance(scores, Tensor) or scores.dim() != 1 or scores.shape[0] == 0:
            given = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ArgumentError(f"scores must be a non-empty [B] torch tensor, got {given}.")
        config = self.config
        if world_size() > 1:
            low, high = GlobalExtremes.apply(scores)
        else:
            low, high = scores.aminmax()  # one operation, and one in the backward pass
        span = high - low
        flat = span <= config.eps  # equal scores: the middle, 0.5
        # As `torch.where` would, with fewer operations here and in the backward pass.
        relative = ((scores - low) / span.masked_fill(flat, 1.0)).masked_fill(flat, 0.5)
        slope = F.softplus(self.gamma.to(scores.dtype))
        rates = config.p_min + (config.p_max - config.p_min) * torch.tanh(relative * slope)
        # Rounding may step over the bounds by one unit in the last place.
        return rates.clamp(config.p_min, config.p_max)


def world_size() -> int:
    """Return the number of processes; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class GlobalExtremes(torch.autograd.Function):
    """Minimum and maximum of the scores `[B]` of all ranks.

    The gradient of an extreme, summed over all ranks, goes to the ranks that hold it.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> tuple[Tensor, Tensor]:
        extremes = torch.stack([-scores.amin(), scores.amax()])
        dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
        low, high = -extremes[0], extremes[1]
        is_low, is_high = scores == low, scores == high
        ties = torch.stack([is_low.sum(), is_high.sum()])
        dist.all_reduce(ties)
        ctx.save_for_backward(is_low, is_high, ties)
        return low, high

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_low: Tensor, grad_high: Tensor) -> Tensor:
        is_low, is_high, ties = ctx.saved_tensors
        grads = torch.stack([grad_low, grad_high])
        dist.all_reduce(grads)
        low, high = grads / ties
        gradient: Tensor = is_low * low + is_high * high
        return gradient
