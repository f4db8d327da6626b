"""What several processes share: the extremes of their batches and the means of gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable


def world_size() -> int:
    """Return the number of processes; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def average_gradient(parameter: Tensor) -> None:
    """Replace the gradient of a parameter by its mean over all processes; a hook of autograd."""
    if world_size() > 1 and parameter.grad is not None:
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size()


def reduce_extremes(low_of: Tensor, high_of: Tensor) -> tuple[Tensor, Tensor]:
    """Return the minimum of `low_of` and maximum of `high_of` over all processes."""
    low, high = _GlobalExtremes.apply(low_of, high_of)
    return low, high


class _GlobalExtremes(torch.autograd.Function):
    """Leads the gradient of an extreme, summed over all ranks, to the ranks that hold it."""

    @staticmethod
    def forward(ctx: Any, low_of: Tensor, high_of: Tensor) -> tuple[Tensor, Tensor]:
        extremes = torch.stack([-low_of.amin(), high_of.amax()])
        dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
        low, high = -extremes[0], extremes[1]
        is_low, is_high = low_of == low, high_of == high
        ties = torch.stack([is_low.sum(), is_high.sum()])
        dist.all_reduce(ties)
        ctx.save_for_backward(is_low, is_high, ties)
        return low, high

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_low: Tensor, grad_high: Tensor) -> tuple[Tensor, Tensor]:
        is_low, is_high, ties = ctx.saved_tensors
        grads = torch.stack([grad_low, grad_high])
        dist.all_reduce(grads)
        low, high = grads / ties
        return is_low * low, is_high * high
