"""Rates whose backward may run more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def repeatable(
    rates_of: Callable[[Tensor], Tensor], window: Tensor, parameters: Iterable[nn.Parameter]
) -> Tensor:
    """`rates_of(window)` `[B]` for parts of a model that are differentiated one by one.

    Reentrant activation checkpointing runs a backward of its own for every part, and the first one
    would free the graph of the rates, which all of them share.
    """
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return rates_of(window)
    rates: Tensor = _Repeatable.apply(rates_of, window, *parameters)
    return rates


class _Repeatable(torch.autograd.Function):
    """Keeps its graph as an attribute, which no backward frees; it goes with the rates."""

    @staticmethod
    def forward(ctx: Any, rates_of: Callable[[Tensor], Tensor], *sources: Tensor) -> Tensor:
        with torch.enable_grad():
            ctx.rates = rates_of(sources[0])
        ctx.sources = sources
        rates: Tensor = ctx.rates.detach()
        return rates

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        wanted = [
            source for source, is_needed in zip(ctx.sources, needed, strict=True) if is_needed
        ]
        found = iter(
            torch.autograd.grad(ctx.rates, wanted, grad, retain_graph=True, allow_unused=True)
        )
        return None, *(next(found) if is_needed else None for is_needed in needed)
