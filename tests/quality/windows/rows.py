"""Training rows and windows that the tests share: two daily waves and their sum."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from sacm.quality.windows.fit import fit_window_guard
from sacm.quality.windows.module import WindowGuard

LENGTH = 48
TRAIN = 2400
MEAN = np.array([0.0, 50.0, -3.0], dtype=np.float32)
SCALE = np.array([1.0, 20.0, 0.1], dtype=np.float32)


@functools.cache
def rows() -> np.ndarray:
    """Rows [3600, 3] in units that differ by channel."""
    random = np.random.default_rng(0)
    t = np.arange(3600)
    noise = 0.1 * random.standard_normal((3600, 3))
    slow = np.cumsum(random.standard_normal(3600)) * 0.02
    a, b = np.sin(2 * np.pi * t / 24) + slow, np.cos(2 * np.pi * t / 24)
    return ((np.stack([a, b, a + b], 1) + noise) * SCALE + MEAN).astype(np.float32)


@functools.cache
def guard() -> WindowGuard:
    """A guard fitted on the first rows; tests must not change it."""
    return fit_window_guard(rows()[:TRAIN], LENGTH)


def windows(every: int = 24) -> Tensor:
    """Windows [B, 48, 3] of the rows after training, without faults."""
    later = torch.from_numpy(rows()[TRAIN:].copy())
    return later.unfold(0, LENGTH, every).transpose(1, 2).contiguous()


def broken_windows() -> Tensor:
    """Windows with one fault each: missing, stuck, spike, noise, offset, none."""
    x = windows()[:12].clone()
    scale = torch.from_numpy(SCALE)
    x[0, 10:20] = torch.nan
    x[1, 8:40, 0] = x[1, 7, 0]
    x[2, 20, 1] += 2.5 * scale[1]
    x[3, :, 2] += torch.from_numpy(np.random.default_rng(1).standard_normal(48).astype("f4")) * 0.1
    x[4, :, 0] += 1.5 * scale[0]
    return x
