"""Make rates whose backward pass may run more than once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def retain_rates(rates: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """Return the same rates `[B]` with a graph that survives several backward passes.

    Reentrant activation checkpointing runs a backward of its own for every part of a model. The
    first one would free the graph from the rates to their `sources`, which all parts share.
    """
    with torch.enable_grad():
        again: Tensor = _RetainedRates.apply([rates], *sources)
    return again


class _RetainedRates(torch.autograd.Function):
    """Keeps the rates with their graph as an attribute, where autograd does not free it."""

    @staticmethod
    def forward(ctx: Any, hidden: list[Tensor], *sources: Tensor) -> Tensor:
        (ctx.rates,) = hidden
        ctx.sources = sources
        return hidden[0].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        found = torch.autograd.grad(
            ctx.rates, ctx.sources, grad, retain_graph=True, allow_unused=True
        )
        return None, *found
