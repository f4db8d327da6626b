"""Rates whose backward may run more than once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def retain_rates(rates: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """The same rates `[B]`, for parts of a model that are differentiated one by one.

    Reentrant activation checkpointing runs a backward of its own for every part, and the first one
    would free the graph that leads from the rates to their `sources`, which all parts share.
    """
    with torch.enable_grad():
        again: Tensor = _Repeatable.apply([rates], *sources)
    return again


class _Repeatable(torch.autograd.Function):
    """Keeps the rates as an attribute, out of autograd's sight, and their graph with them."""

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
