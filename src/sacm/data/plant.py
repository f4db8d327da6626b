"""A simulated plant with broken sensors: the data of the demo."""

from __future__ import annotations

import numpy as np

from sacm.data.corrupt import corrupt_series
from sacm.data.datasets import ForecastingData
from sacm.data.splits import split_by_ratio

NAME = "Plant"
_ROWS = 4000
_RATIOS = (0.7, 0.1, 0.2)
_CORRUPTED = 0.25


def plant(seed: int = 0) -> ForecastingData:
    """Hourly load, heat and pressure of a plant; training and validation rows are corrupted.

    A quarter of their values are wild points, bursts of noise, held values or zeros, each channel
    by itself. Test rows are clean.

    Args:
        seed: Of noise and faults.

    Example:
        >>> plant().values.shape
        (4000, 3)
    """
    random = np.random.default_rng(seed)
    hours = np.arange(_ROWS)
    day, week = 2 * np.pi * hours / 24, 2 * np.pi * hours / 168
    load = 50 + 10 * np.sin(day) + 4 * np.sin(week) + _wander(random, 0.9, 1.0)
    heat = 20 + 0.6 * (np.roll(load, 2) - 50) + 3 * np.cos(day) + _wander(random, 0.8, 0.5)
    pressure = 5 + 0.05 * (load - 50) + _wander(random, 0.99, 0.05)
    clean = np.stack([load, heat, pressure], axis=1).astype(np.float32)
    splits = split_by_ratio(_ROWS, _RATIOS)
    values = clean.copy()
    for number, rows in enumerate((splits.train, splits.val)):
        part = slice(rows.start, rows.stop)
        values[part] = corrupt_series(clean[part], "mix", _CORRUPTED, seed=seed + number).values
    first = np.datetime64("2024-01-01", "s")
    return ForecastingData(
        name=NAME,
        values=values,
        columns=("load", "heat", "pressure"),
        splits=splits,
        timestamps=first + hours.astype("timedelta64[h]"),
        frequency="h",
        notes=(
            f"Simulated: {_CORRUPTED:.0%} of the training and validation values are broken on "
            "purpose, test rows are clean.",
        ),
    )


def _wander(random: np.random.Generator, persistence: float, size: float) -> np.ndarray:
    """Noise of deviation `size` that remembers: an autoregression of first order."""
    steps = random.normal(0, size * np.sqrt(1 - persistence**2), _ROWS)
    values = np.empty(_ROWS)
    level = 0.0
    for row, step in enumerate(steps):
        level = persistence * level + step
        values[row] = level
    return values
