"""Overlapping patches of a series whose end is repeated by one stride."""

from __future__ import annotations

import torch
from torch import Tensor


def count_patches(length: int, *, patch: int, stride: int) -> int:
    """How many patches `cut_patches` makes of `length` steps."""
    return (length + stride - patch) // stride + 1


def repeat_last(x: Tensor, steps: int) -> Tensor:
    """`[..., T]` with its last value repeated `steps` more times, any number of them."""
    return torch.cat((x, x[..., -1:].expand(*x.shape[:-1], steps)), dim=-1)


def cut_patches(x: Tensor, *, patch: int, stride: int) -> Tensor:
    """`[..., T]` to `[..., N, patch]`."""
    return repeat_last(x, stride).unfold(-1, patch, stride)
