"""The corruption families, for diagnostics and for any data set at a chosen level."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import ForecastingData
from sacm.data.synthetic.synth12 import SEED_STEP, add_layered_noise
from sacm.data.tables.tensors import as_numpy
from sacm.errors import ArgumentError

Corruption = Literal["gaussian", "student_t", "missing", "layered"]
KINDS: tuple[Corruption, ...] = ("gaussian", "student_t", "missing", "layered")
DEGREES_OF_FREEDOM = 2.5
SHORTEST_LAYERED = 6

Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)


def corrupt(
    x: Corruptible, kind: Corruption = "gaussian", level: float = 0.3, *, seed: int = 0
) -> Corruptible:
    """`x` with a corruption of the given level; shape and kind of `x` stay.

    gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread of each
    channel. missing sets a share `level` of the entries to 0. layered is the mixture of Synth-12
    along the first axis: noise and spikes whose strength changes in regimes, and short gaps.
    Channels are the last axis, or there is one if `x` is `[T]`. A data set keeps its clean values
    as targets.
    """
    if kind not in KINDS:
        raise ArgumentError(f"There is no corruption {kind!r}: use {', '.join(KINDS)}.")
    largest = 1.0 if kind == "missing" else np.inf
    if not 0 <= level <= largest:
        raise ArgumentError(f"The level of {kind} must be in 0 … {largest:g}, got {level}.")
    if isinstance(x, ForecastingData):
        worse = corrupt(x.values, kind, level, seed=seed)
        return replace(x, values=worse, targets=x.clean)
    if isinstance(x, Tensor):
        worse = torch.from_numpy(corrupt(as_numpy(x), kind, level, seed=seed)).to(x.device)
        return worse.to(x.dtype) if x.is_floating_point() else worse
    check_array(x)
    array = np.asarray(x, dtype=np.float64)
    channels = array if array.ndim > 1 else array[:, None]
    result = corrupt_channels(channels, kind, level, seed=seed).reshape(array.shape)
    return result.astype(x.dtype if np.issubdtype(x.dtype, np.floating) else np.float64)


def check_array(x: object) -> None:
    """Refuse what has no channels of numbers."""
    if not isinstance(x, np.ndarray):
        raise ArgumentError(
            f"corrupt takes an array, a tensor or ForecastingData, not {type(x).__name__}."
        )
    if x.dtype.kind not in "fiub" or x.ndim == 0:
        raise ArgumentError(
            f"corrupt needs numbers [T] or [..., C], got {x.dtype} of shape {list(x.shape)}."
        )


def corrupt_channels(x: np.ndarray, kind: Corruption, level: float, *, seed: int) -> np.ndarray:
    """The same for a float64 array `[..., C]`."""
    random = np.random.default_rng(seed)
    if kind == "missing":
        return np.asarray(np.where(random.random(x.shape) < level, 0.0, x))
    spread = x.std(axis=tuple(range(x.ndim - 1)))  # [C]
    spread = np.where(spread > 0, spread, 1.0)
    if kind == "layered":
        return np.asarray(layered_channels(x / spread, level, seed=seed) * spread)
    if kind == "gaussian":
        noise = random.standard_normal(x.shape)
    else:
        noise = random.standard_t(DEGREES_OF_FREEDOM, x.shape)
    return np.asarray(x + level * spread * noise)


def layered_channels(x: np.ndarray, level: float, *, seed: int) -> np.ndarray:
    """Synth-12's mixture on every channel of `[T, C]`, each with its own draws."""
    if x.ndim != 2 or len(x) < SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    columns = [add_layered_noise(x[:, c], level, seed + SEED_STEP * c) for c in range(x.shape[1])]
    return np.stack(columns, axis=1)
