"""Networks that must see training data once before their first step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError


def empty_buffer(*shape: int) -> Tensor:
    """A buffer that no data has filled yet."""
    return torch.full(shape, torch.nan)


def require_fitted(module: nn.Module, buffer: Tensor) -> None:
    """Refuse to run before `prepare` or a checkpoint has filled `buffer`.

    Success is remembered on the module, so that only the first call waits for the device.
    """
    if getattr(module, "_fitted", False):
        return
    if bool(buffer.isnan().any()):
        name = type(module).__name__
        raise ArgumentError(
            f"{name} has seen no training data: call prepare(train_x) with windows [N, L, C] of "
            "the training part, or load a checkpoint, before the first forward."
        )
    module._fitted = True  # type: ignore[assignment]  # a plain flag, not a Tensor or Module
