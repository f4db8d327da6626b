"""What the parts of the window guard share: frozen tensors, and work on some windows only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Part(nn.Module):
    """A part of the guard; every tensor it is made of is a buffer of the same name."""

    def __init__(self, **tensors: Tensor) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.clone(memory_format=torch.contiguous_format))


def tracing() -> bool:
    """Whether a graph is being made, so that no Python branch may depend on values."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def on_windows(hit: Tensor, change: Callable[..., Tensor], x: Tensor, *others: Tensor) -> Tensor:
    """Replace the windows of `x` where `hit` by `change(x, *others)`; the others stay as they are.

    In eager mode only the windows that are hit are computed; in a graph all of them are.

    Args:
        hit: which windows, bool [B].
        change: a function of `x` and `others`, window by window, with a result like `x`.
        x: windows, B first.
        others: more arguments of `change`, B first.
    """
    if tracing():
        own = hit.view((-1,) + (1,) * (x.dim() - 1))
        changed = change(x, *others)
        if x.dtype == torch.bool:  # onnxruntime chooses between numbers alone
            return (own & changed) | (~own & x)
        return torch.where(own, changed, x)
    rows = hit.nonzero().squeeze(1)
    if len(rows) == 0:
        return x
    if len(rows) == len(x):
        return change(x, *others)
    result = x.clone()
    result[rows] = change(x[rows], *(other[rows] for other in others))
    return result


def any_in_window(flags: Tensor) -> Tensor:
    """Which windows hold a flag: [B, …] to [B]."""
    return flags.flatten(1).any(1)
