"""Parts of the training windows that share no row with the rest."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

FOLDS = 3
MOST_CHECKED = 3_100_000
"""Entries of the windows that a limit is checked on; more would cost time and change little."""
WIDER = 20.0
SMALLEST_LIMIT = 1e-8


class Fold(NamedTuple):
    """Positions of windows to learn from and of windows to check on."""

    inside: Tensor
    held: Tensor


def cut_folds(starts: Tensor, length: int, count: int = FOLDS) -> list[Fold]:
    """Cut windows into contiguous folds.

    Windows that share a row with a held window are neither learnt from nor checked on.

    Args:
        starts: The first row of each window `[N]`.
        length: Steps of a window.
        count: How many folds to make.

    Returns:
        The folds; each holds other windows.
    """
    borders = torch.linspace(0, len(starts), count + 1).long().tolist()
    folds = []
    for first, stop in pairwise(borders):
        held = torch.arange(first, stop)
        if len(held) == 0:
            continue
        low, high = starts[held].min() - length, starts[held].max() + length
        inside = ((starts <= low) | (starts >= high)).nonzero().squeeze(1)
        if len(inside) > 1:
            folds.append(Fold(inside, held))
    return folds


def steady_quantile(values: np.ndarray, share: float, folds: list[Fold]) -> np.ndarray:
    """Find a limit for each channel that a given share of values passes, also after training.

    The limit grows by the largest factor by which values of a held-out fold exceed the others: what
    changed from one part of training to another will change again. That factor is taken where
    `WIDER` times as many values pass, because few extremes say little about change.

    Args:
        values: What is to be limited `[N, …, C]`, one entry a training window.
        share: The share of values that may pass.
        folds: Windows to learn from and to check on.

    Returns:
        The limits `[C]`, float32.
    """
    flat = values.reshape(len(values), -1, values.shape[-1])

    def limit(some: np.ndarray, passing: float) -> np.ndarray:
        top = np.quantile(some.reshape(-1, flat.shape[-1]), 1 - passing, axis=0)
        return np.asarray(np.maximum(top, SMALLEST_LIMIT))

    wide = min(0.5, WIDER * share)
    growth = np.ones(flat.shape[-1])
    for fold in folds:
        held, inside = flat[fold.held.numpy()], flat[fold.inside.numpy()]
        growth = np.maximum(growth, limit(held, wide) / limit(inside, wide))
    return (growth * limit(flat, share)).astype(np.float32)


def draw_windows(windows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """At most `count` of the windows [N, L, C], fewer if they are large, without replacement."""
    count = max(1, min(count, MOST_CHECKED // windows[0].numel()))
    return windows[torch.randperm(len(windows), generator=generator)[:count]]
