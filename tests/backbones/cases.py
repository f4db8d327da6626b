"""Inputs for the tests of single backbones."""

from __future__ import annotations

import torch
from torch import Tensor


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers, the same at every call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
