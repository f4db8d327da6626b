"""Two Tides: a made series, so that nothing has to be downloaded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sacm.data import ForecastingData, forecasting_data, register


@register("Two Tides", task="forecasting", aliases=("tides",))
def two_tides() -> ForecastingData:
    """Hourly water levels of two made harbours, 1,200 rows."""
    random = np.random.default_rng(0)
    hours = np.arange(1200)
    moon = np.sin(2 * np.pi * hours / 12.42)
    sun = 0.4 * np.sin(2 * np.pi * hours / 12.0)
    levels = np.stack([moon + sun, np.roll(moon, 3) + 0.5 * sun], axis=1)
    levels += 0.1 * random.standard_normal(levels.shape)
    frame = pd.DataFrame(levels, columns=["north", "south"])
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=len(hours), freq="h"))
    return forecasting_data(frame)
