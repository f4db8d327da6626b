"""Windows of data that a strategy has prepared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sacm.data.datasets import AnyData, ForecastingData
from sacm.data.scaling import cover_series, fit_scaler
from sacm.data.windows import SplitWindows
from sacm.settings import ResolvedSettings
from sacm.tasks.base import Task, scaler_of


def cut_prepared_windows(
    task: Task[Any], settings: ResolvedSettings, data: AnyData, prepared: AnyData
) -> SplitWindows[Any]:
    """Windows of the data that a strategy prepared, scaled by their training rows.

    Forecasting errors are still stated in deviations of the data as they came: strategies that
    repair differently would otherwise be measured with different yardsticks.
    """
    windows = task.windows(settings, prepared)
    if prepared is data or not isinstance(data, ForecastingData):
        return windows
    scaler = scaler_of(windows)
    given = cover_series(fit_scaler(data), data, settings.input_len)
    scaler = replace(scaler, reference=given.of_series(scaler.series).std.reshape(scaler.std.shape))
    return task.windows(settings, prepared, scaler=scaler)
