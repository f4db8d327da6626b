"""The simulated plant of `sacm demo`: a series whose training rows are broken on purpose."""

from __future__ import annotations

import numpy as np

from sacm.data.datasets import ForecastingData, split_by_ratio
from sacm.data.load import Dataset

ROWS, CORRUPTED, FAULT_ROWS = 4000, 0.25, 60  # share of values, and length of a fault


def plant(seed: int = 0) -> ForecastingData:
    """Hourly load, heat and pressure of a plant; training and validation rows are corrupted.

    A quarter of their values are wild points, bursts of noise, held values or zeros, each channel
    by itself. Test rows are clean. `seed` is that of noise and faults.

    Example:
        >>> plant().values.shape
        (4000, 3)
    """
    random = np.random.default_rng(seed)
    hours = np.arange(ROWS)
    day, week = 2 * np.pi * hours / 24, 2 * np.pi * hours / 168
    load = 50 + 10 * np.sin(day) + 4 * np.sin(week) + random.normal(0, 1, ROWS)
    heat = 20 + 0.6 * (np.roll(load, 2) - 50) + 3 * np.cos(day) + random.normal(0, 0.5, ROWS)
    pressure = 5 + 0.05 * (load - 50) + random.normal(0, 0.05, ROWS)
    values = np.stack([load, heat, pressure], axis=1).astype(np.float32)
    splits = split_by_ratio(ROWS)
    for channel in values[: splits.test.start].T:
        _put_faults(channel, CORRUPTED / 4, random)
    return ForecastingData(
        name="Plant",
        values=values,
        columns=("load", "heat", "pressure"),
        splits=splits,
        timestamps=np.datetime64("2024-01-01", "s") + hours.astype("timedelta64[h]"),
        frequency="h",
        notes=(
            f"Simulated: {CORRUPTED:.0%} of the training and validation values are broken on "
            "purpose, test rows are clean.",
        ),
    )


def _put_faults(channel: np.ndarray, share: float, random: np.random.Generator) -> None:
    """Put each kind of fault into about a share of a channel `[T]`, in place."""
    size = channel.std()
    points = random.random(len(channel)) < share
    channel[points] += 3 * size * random.standard_normal(int(points.sum()))
    for kind in ("burst", "held", "zero"):
        for _ in range(round(share * len(channel) / FAULT_ROWS)):
            first = int(random.integers(1, len(channel) - FAULT_ROWS))
            segment = channel[first : first + FAULT_ROWS]
            if kind == "burst":
                segment += 1.5 * size * random.standard_normal(FAULT_ROWS)
            else:
                segment[:] = segment[0] if kind == "held" else 0


PLANT = Dataset(name="Plant", task="forecasting", loader=plant)
