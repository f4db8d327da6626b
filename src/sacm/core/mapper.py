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
        low, high = scores.aminmax()  # one operation, and one in the backward pass
        if world_size() > 1:
            low, high = GlobalMaxima.apply(torch.stack([-low, high]))
            low = -low
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


class GlobalMaxima(torch.autograd.Function):
    """Maxima over all ranks; each gradient, summed over all ranks, goes to those that hold it."""

    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        maxima = local.clone()
        dist.all_reduce(maxima, op=dist.ReduceOp.MAX)
        held = (local == maxima).to(local.dtype)
        holders = held.clone()
        dist.all_reduce(holders)
        ctx.save_for_backward(held / holders)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (share,) = ctx.saved_tensors
        total: Tensor = grad.clone()
        dist.all_reduce(total)
        return total.mul_(share)
