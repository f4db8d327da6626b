"""The nearest good steps on both sides of every step, and what they say about the steps between."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class WindowNeighbours(NamedTuple):
    """Values of the nearest good steps and the distances to them, each [B, L, C].

    Without a good step on a side its value is 0 and its distance exceeds the window's length.
    """

    left: Tensor
    right: Tensor
    to_left: Tensor
    to_right: Tensor


def last_true(flags: Tensor) -> Tensor:
    """The latest step at or before each step where `flags` holds, or -1; [B, L, C] of int64."""
    length = flags.shape[1]
    # int32 is half the work of int64; gather alone needs the wider numbers.
    steps = torch.arange(length, device=flags.device, dtype=torch.int32).view(1, length, 1)
    latest = torch.where(flags, steps, -1)
    reach = 1
    while reach < length:  # doubling: exported graphs know no running maximum
        shifted = torch.cat([latest[:, :reach], latest[:, :-reach]], 1)
        latest = torch.maximum(latest, shifted)
        reach *= 2
    return latest.long()


def next_true(flags: Tensor) -> Tensor:
    """The first step at or after each step where `flags` holds, or L; [B, L, C] of int64."""
    return flags.shape[1] - 1 - last_true(flags.flip(1)).flip(1)


def find_neighbours(values: Tensor, good: Tensor) -> WindowNeighbours:
    """The nearest good values on both sides of every step.

    Args:
        values: [B, L, C].
        good: which of them can be trusted, bool [B, L, C].
    """
    length = values.shape[1]
    before, after = last_true(good), next_true(good)
    steps = torch.arange(length, device=values.device).view(1, length, 1)
    has_left, has_right = before >= 0, after < length
    left = torch.where(has_left, values.gather(1, before.clamp_min(0)), 0.0)
    right = torch.where(has_right, values.gather(1, after.clamp_max(length - 1)), 0.0)
    far = float(4 * length)
    to_left = torch.where(has_left, (steps - before).to(values.dtype), far)
    to_right = torch.where(has_right, (after - steps).to(values.dtype), far)
    return WindowNeighbours(left, right, to_left, to_right)


def interpolate(near: WindowNeighbours) -> Tensor:
    """Straight lines between good steps, held beyond the outermost; 0 in a channel without any."""
    length = near.left.shape[1]
    has_left, has_right = near.to_left < length, near.to_right < length
    share = near.to_left / (near.to_left + near.to_right).clamp_min(1.0)
    line = near.left + share * (near.right - near.left)
    return torch.where(has_left & has_right, line, torch.where(has_left, near.left, near.right))


def bridge(near: WindowNeighbours, carry: Tensor) -> Tensor:
    """The expected path of an AR(1) process between good steps; it decays to 0 far from them.

    Args:
        near: neighbours of every step; the values are residuals.
        carry: lag-1 correlation of each channel, [C], between 0 and 1.
    """
    left, right = carry**near.to_left, carry**near.to_right
    total = (1 - (left * right) ** 2).clamp_min(1e-6)
    return (left * (1 - right**2) * near.left + right * (1 - left**2) * near.right) / total
