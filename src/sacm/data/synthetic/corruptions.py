"""Corrupt arrays, tensors and data sets by any fault, at a chosen level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from sacm.data import gaps
from sacm.data.datasets import ForecastingData
from sacm.data.synthetic.synth12 import SEED_STEP, add_layered_noise
from sacm.data.tables.tensors import as_numpy
from sacm.errors import ArgumentError
from sacm.faults.catalogue import FAULTS, Fault
from sacm.faults.noise import spread_of
from sacm.faults.registry import ValueFault, register_values
from sacm.faults.series import break_series, choose_channels
from sacm.faults.windows import break_windows

Corruption = Literal["gaussian", "student_t", "missing", "layered"]  # those in every value
FaultTargets = Literal["clean", "same"]
SHORTEST_LAYERED = 6

Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)
Function = TypeVar("Function", bound=ValueFault)


def register(name: str, *, largest: float = np.inf) -> Callable[[Function], Function]:
    """Give a decorator that makes a corruption of every value available to `sacm.data.corrupt`.

    Faults in places, for series and for windows, are added by
    `sacm.faults.registry.register_fault`.

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
        title = (function.__doc__ or name).partition("\n")[0].rstrip(".")
        register_values(name, title, function, largest=largest)
        return function

    return add


def names() -> list[str]:
    """List the faults that `corrupt` takes, plug-ins included."""
    return [name for name, fault in FAULTS.items() if fault.labels is None]


def corrupt(
    x: Corruptible,
    kind: str = "gaussian",
    level: float = 0.3,
    *,
    seed: int = 0,
    channels: Sequence[int] | None = None,
    targets: FaultTargets = "clean",
) -> Corruptible:
    """Corrupt values, or the inputs of a data set.

    Args:
        x: An array or tensor whose last axis are channels (or `[T]`), or a `ForecastingData`.
        kind: gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread
            of each channel; missing sets a share `level` of the entries to 0; layered is the
            mixture of Synth-12 along the first axis: noise and spikes whose strength changes in
            regimes, and short gaps. Every other fault breaks a share `level` of a series, or
            windows `[B, L, C]` of z-scores with severity `level`.
        level: How much.
        seed: Of the random draw.
        channels: Positions of the channels to corrupt; all if None.
        targets: What a `ForecastingData` is to forecast: its clean values ("clean"), or the
            corrupted ones ("same"). Values that are gone are interpolated and not observed.

    Returns:
        The same kind of object, of the same shape.

    Raises:
        ArgumentError: There is no such fault, or it does not fit the data or the level.

    Example:
        >>> float((corrupt(np.ones((50, 2)), "missing", 0.3) == 0).mean()) > 0.2
        True
    """
    if isinstance(x, ForecastingData):
        worse = corrupt(x.values, kind, level, seed=seed, channels=channels)
        return replace(x, **worse_fields(x, worse, targets))
    if isinstance(x, Tensor):
        options: dict[str, Any] = {"seed": seed, "channels": channels}
        tensor = torch.from_numpy(corrupt(as_numpy(x), kind, level, **options)).to(x.device)
        return tensor.to(x.dtype) if x.is_floating_point() else tensor
    found = FAULTS.get(kind)
    check_array(x)
    if not 0 <= level <= (found.largest if found.values else 1.0):
        largest = found.largest if found.values else 1.0
        raise ArgumentError(f"The level of {kind} must be in 0 … {largest:g}, got {level}.")
    array = np.asarray(x, dtype=np.float64)
    rows = array if array.ndim > 1 else array[:, None]
    result = _corrupt_rows(rows, kind, found, level, seed)
    if channels is not None:
        chosen = np.zeros(rows.shape[-1], dtype=bool)
        chosen[choose_channels(channels, rows.shape[-1])] = True
        result = np.where(chosen, result, rows)
    return result.reshape(array.shape).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def _corrupt_rows(x: np.ndarray, kind: str, fault: Fault, level: float, seed: int) -> np.ndarray:
    """An array `[..., C]` by the form of the fault that fits it."""
    if fault.values is not None:
        return np.asarray(fault.values(x, level, seed))
    if fault.labels is not None:
        raise ArgumentError(f"{kind} breaks labels: use sacm.data.contaminate.")
    if x.ndim == 2:
        return break_series(x, kind, level, seed=seed).values
    if x.ndim == 3:
        return break_windows(torch.from_numpy(x), kind, level, seed=seed).numpy()
    raise ArgumentError(f"{kind} needs a series [T], [T, C] or windows [B, L, C].")


def worse_fields(data: ForecastingData, worse: np.ndarray, targets: FaultTargets) -> dict[str, Any]:
    """What changes in a data set with other values; those that are NaN are interpolated."""
    if targets not in ("clean", "same"):
        raise ArgumentError(f"targets must be clean or same, got {targets!r}.")
    filled = fill_gaps(data, worse)
    if targets == "clean":
        return {"values": filled.values, "targets": data.clean}
    observed = data.observed
    if filled.observed is not None:
        observed = filled.observed if observed is None else filled.observed * observed
    return {"values": filled.values, "targets": None, "observed": observed}


def fill_gaps(data: ForecastingData, values: np.ndarray) -> gaps.Filled:
    """Values without NaN, each split of each series by itself, and which of them are real."""
    pieces = [rows for split in ("train", "val", "test") for rows in data.ranges(split)]
    return gaps.fill(values, pieces, policy="mask", columns=data.columns, where=data.name)


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


@register("layered")
def add_layers(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add the mixture of Synth-12, scaled by the spread of each channel."""
    spread = spread_of(x)
    return np.asarray(layered_channels(x / spread, level, seed=seed) * spread)


def layered_channels(x: np.ndarray, level: float, *, seed: int) -> np.ndarray:
    """Synth-12's mixture on every channel of `[T, C]`, each with its own draws."""
    if x.ndim != 2 or len(x) < SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    columns = [add_layered_noise(x[:, c], level, seed + SEED_STEP * c) for c in range(x.shape[1])]
    return np.stack(columns, axis=1)
