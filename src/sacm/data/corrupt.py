"""Corrupt arrays, tensors and data sets on purpose, by a fault of a plug-in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from sacm import registry
from sacm.data.datasets import AnyData, ForecastingData, as_numpy
from sacm.data.scaling import fill_data
from sacm.errors import ArgumentError
from sacm.registry import TRAINING_FAULTS, Registry

ValueFault = Callable[[np.ndarray, float, int], np.ndarray]
Corruptible = TypeVar("Corruptible", np.ndarray, Tensor, ForecastingData)


@dataclass(frozen=True)
class Fault:
    """A corruption of values.

    `values` gets a float64 array `[..., C]`, which it must not change, a level (0 to `largest`; 0
    changes nothing) and a seed; it returns an array of the same shape.
    """

    title: str
    values: ValueFault
    largest: float = np.inf


CORRUPTIONS: Registry[Fault] = registry.CORRUPTIONS


def corrupt(
    x: Corruptible,
    kind: str = "gaussian",
    level: float = 0.3,
    *,
    seed: int = 0,
    targets: Literal["clean", "same"] = "clean",
) -> Corruptible:
    """Corrupt values, or the inputs of a data set.

    Args:
        x: An array or tensor whose last axis are channels (or `[T]`), or a `ForecastingData`.
        kind: gaussian and student_t (2.5 degrees of freedom) add noise of `level` times the spread
            of each channel; missing sets a share `level` of the entries to 0; layered is the
            mixture of Synth-12 along the first axis. Others (`sacm corrupt --list`) corrupt a share
            `level` of a series.
        level: How much.
        seed: Of the random draw.
        targets: What a `ForecastingData` is to forecast: its clean values ("clean"), or the
            corrupted ones ("same"). Values that are gone are interpolated and not observed.

    Example:
        >>> float((corrupt(np.ones((50, 2)), "missing", 0.3) == 0).mean()) > 0.2
        True
    """
    if isinstance(x, ForecastingData):
        if targets not in ("clean", "same"):
            raise ArgumentError(f"targets must be clean or same, got {targets!r}.")
        return with_values(x, corrupt(x.values, kind, level, seed=seed), clean=targets == "clean")
    if isinstance(x, Tensor):
        array: Any = corrupt(as_numpy(x), kind, level, seed=seed)
        tensor = torch.from_numpy(array).to(x.device)
        return tensor.to(x.dtype) if x.is_floating_point() else tensor
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub" or x.ndim == 0:
        raise ArgumentError(
            "corrupt takes numbers [T] or [..., C], an array, a tensor or ForecastingData, not "
            f"{type(x).__name__} of shape {list(np.shape(x))}."
        )
    fault = CORRUPTIONS.get(kind)
    if not 0 <= level <= fault.largest:
        raise ArgumentError(f"The level of {kind} must be in 0 … {fault.largest:g}, got {level}.")
    array = np.asarray(x, dtype=np.float64)
    result = np.asarray(fault.values(array if array.ndim > 1 else array[:, None], level, seed))
    return result.reshape(array.shape).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def with_values(data: ForecastingData, values: np.ndarray, *, clean: bool) -> ForecastingData:
    """A data set with other values, interpolated where NaN, and clean targets or the same ones."""
    filled, _ = fill_data(replace(data, values=values))
    if clean:
        return replace(data, values=filled.values, targets=data.clean)
    return replace(data, values=filled.values, targets=None, observed=filled.observed)


def parse_contamination(text: str) -> tuple[str, float]:
    """Fault and share of a text such as `mix(0.3)`; without a share it is 0.3."""
    match = re.fullmatch(r"([^(]+)(?:\((\d*\.?\d+)\))?", text.replace(" ", ""))
    ratio = float(match[2] or 0.3) if match else 0.0
    if match is None or not 0 < ratio <= 1:
        raise ArgumentError(
            f"contamination {text!r}: write a fault and a share in (0, 1], such as mix(0.3)."
        )
    return TRAINING_FAULTS.entry(match[1]).name, ratio


def corrupt_training(data: AnyData, contamination: str, *, seed: int = 0) -> AnyData:
    """Corrupt the training and validation part of a data set; the test part stays unchanged.

    `contamination` is a fault and a share, such as "mix(0.3)"; an empty text changes nothing.
    Forecasting: rows, so inputs and targets; `broken` says which values. Classification: labels.
    Anomaly detection: training rows.
    """
    if not contamination:
        return data
    kind, ratio = parse_contamination(contamination)
    return TRAINING_FAULTS.get(kind)(data, ratio, seed)
