"""Noise in every value of an array: `sacm.data.corrupt` finds these by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sacm.data.corrupt import Fault, ValueFault
from sacm.errors import ArgumentError
from sacm_lab.datasets.synth12 import SEED_STEP, add_layered_noise

_DEGREES_OF_FREEDOM = 2.5
_SHORTEST_LAYERED = 6


def _add_noise(draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> ValueFault:
    """Make a fault that adds drawn numbers of `level` times the spread of each channel."""
    return lambda x, level, seed: np.asarray(
        x + level * _spread(x) * draw(np.random.default_rng(seed), x.shape)
    )


def _spread(x: np.ndarray) -> np.ndarray:
    """Standard deviation `[C]` of each channel of `[..., C]`; 1 where a channel is constant."""
    spread = x.std(axis=tuple(range(x.ndim - 1)))
    return np.where(spread > 0, spread, 1.0)


def _blank_entries(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Set a share `level` of the entries to 0."""
    return np.asarray(np.where(np.random.default_rng(seed).random(x.shape) < level, 0.0, x))


def _add_layers(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add the mixture of Synth-12, scaled by the spread of each channel."""
    if x.ndim != 2 or len(x) < _SHORTEST_LAYERED:
        raise ArgumentError(
            f"layered needs a series [T] or [T, C] of at least {_SHORTEST_LAYERED} steps, got "
            f"{list(x.shape)}."
        )
    spread = _spread(x)
    columns = [
        add_layered_noise(column, level, seed + SEED_STEP * c)
        for c, column in enumerate((x / spread).T)
    ]
    return np.asarray(np.stack(columns, axis=1) * spread)


missing = Fault("entries are 0", _blank_entries, largest=1.0)
gaussian = Fault(
    "normal noise in every value",
    _add_noise(lambda random, shape: random.standard_normal(shape)),
)
student_t = Fault(
    "noise with heavy tails in every value",
    _add_noise(lambda random, shape: random.standard_t(_DEGREES_OF_FREEDOM, shape)),
)
layered = Fault("the mixture of Synth-12 in every value", _add_layers)
