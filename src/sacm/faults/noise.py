"""Noise in every value of an array, of a level in deviations of each channel."""

from __future__ import annotations

import numpy as np

DEGREES_OF_FREEDOM = 2.5


def add_gaussian_noise(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add normal noise of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_normal(x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


def add_student_t(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Add noise with heavy tails, of `level` times the spread of each channel."""
    noise = np.random.default_rng(seed).standard_t(DEGREES_OF_FREEDOM, x.shape)
    return np.asarray(x + level * spread_of(x) * noise)


def blank_entries(x: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Set a share `level` of the entries to 0."""
    return np.asarray(np.where(np.random.default_rng(seed).random(x.shape) < level, 0.0, x))


def spread_of(x: np.ndarray) -> np.ndarray:
    """Standard deviation `[C]` of each channel of `[..., C]`; 1 where a channel is constant."""
    spread = x.std(axis=tuple(range(x.ndim - 1)))
    return np.where(spread > 0, spread, 1.0)
