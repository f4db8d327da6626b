"""The corruption families, for diagnostics and for any data set at a chosen level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from sacm.data.datasets import ForecastingData
from sacm.data.synthetic.synth12 import SEED_STEP, add_layered_noise
from sacm.data.tables.tensors import as_numpy
from sacm.errors import ArgumentError
from sacm.registry import Registry

Corruption = Literal["gaussian", "student_t", "missing", "layered"]  # those of this package
DEGREES_OF_FREEDOM = 2.5
SHORTEST_LAYERED = 6

Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)
CorruptFunction = Callable[[np.ndarray, float, int], np.ndarray]
Function = TypeVar("Function", bound=CorruptFunction)


class CorruptionEntry(NamedTuple):
    """A function `(x, level, seed) -> worse x` and the largest level it takes."""

    apply: CorruptFunction
    largest: float


CORRUPTIONS: Registry[CorruptionEntry] = Registry("corruption", missing="There is no")


def register(name: str, *, largest: float = np.inf) -> Callable[[Function], Function]:
    """Give a decorator that makes a corruption available to `sacm.data.corrupt`.

    Args:
        name: The kind to ask for.
        largest: The largest level it takes; the smallest is 0, which changes nothing.

    Returns:
        A decorator for a function `(x, level, seed)`: a float64 array `[..., C]`, the level and
        the seed of its random numbers, to an array of the same shape. It must not change `x`.

    Raises:
        ArgumentError: If the name is taken.

    Example:
        >>> import numpy as np
        >>> import sacm
        >>> from sacm.data.synthetic import corruptions
        >>> from sacm.registry import temporary_entries
        >>> with temporary_entries():
        ...     @corruptions.register("clip", largest=1.0)
        ...     def clip(x, level, seed):
        ...         limit = (1 - level) * np.abs(x).max()
        ...         return x.clip(-limit, limit)
        ...     sacm.data.corrupt(np.array([1.0, -4.0]), "clip", 0.5)
        array([ 1., -2.])
    """

    def add(function: Function) -> Function:
        CORRUPTIONS.register(name, origin=function)(CorruptionEntry(function, largest))
        return function

    return add


def names() -> list[str]:
    """List the registered corruptions, plug-ins included."""
    return CORRUPTIONS.names()


def corrupt(
    x: Corruptible, kind: str = "gaussian", level: float = 0.3, *, seed: int = 0
) -> Corruptible:
    """Corrupt values, or the inputs of a data set.

    Args:
        x: An array or tensor whose last axis are channels (or `[T]`), or a `ForecastingData`, which
            keeps its clean values as targets.
        kind: gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread
            of each channel; missing sets a share `level` of the entries to 0; layered is the
            mixture of Synth-12 along the first axis: noise and spikes whose strength changes in
            regimes, and short gaps. Plug-ins may register more.
        level: How much.
        seed: Of the random draw.

    Returns:
        The same kind of object, of the same shape.

    Example:
        >>> float((corrupt(np.ones((50, 2)), "missing", 0.3) == 0).mean()) > 0.2
        True
    """
    found = CORRUPTIONS.get(kind)
    if not 0 <= level <= found.largest:
        raise ArgumentError(f"The level of {kind} must be in 0 … {found.largest:g}, got {level}.")
    if isinstance(x, ForecastingData):
        worse = corrupt(x.values, kind, level, seed=seed)
        return replace(x, values=worse, targets=x.clean)
    if isinstance(x, Tensor):
        worse = torch.from_numpy(corrupt(as_numpy(x), kind, level, seed=seed)).to(x.device)
        return worse.to(x.dtype) if x.is_floating_point() else worse
    check_array(x)
    array = np.asarray(x, dtype=np.float64)
    channels = array if array.ndim > 1 else array[:, None]
    result = np.asarray(found.apply(channels, level, seed)).reshape(array.shape)
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


@register("gaussian")
def add_gaussian_noise(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add normal noise of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_normal(x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


@register("student_t")
def add_student_t(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add noise with heavy tails, of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_t(DEGREES_OF_FREEDOM, x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


@register("missing", largest=1.0)
def blank_entries(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Set a share `level` of the entries to 0."""
    return np.asarray(np.where(np.random.default_rng(seed).random(x.shape) < level, 0.0, x))


@register("layered")
def add_layers(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add the mixture of Synth-12, scaled by the spread of each channel."""
    spread = spread_of(x)
    return np.asarray(layered_channels(x / spread, level, seed=seed) * spread)


def spread_of(x: np.ndarray) -> np.ndarray:
    """Standard deviation `[C]` of each channel of `[..., C]`; 1 where a channel is constant."""
    spread = x.std(axis=tuple(range(x.ndim - 1)))
    return np.where(spread > 0, spread, 1.0)


def layered_channels(x: np.ndarray, level: float, *, seed: int) -> np.ndarray:
    """Synth-12's mixture on every channel of `[T, C]`, each with its own draws."""
    if x.ndim != 2 or len(x) < SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    columns = [add_layered_noise(x[:, c], level, seed + SEED_STEP * c) for c in range(x.shape[1])]
    return np.stack(columns, axis=1)
