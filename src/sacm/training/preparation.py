"""From the data of a run to its windows: corrupted if asked for, prepared, cut and scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sacm.data.corrupt import corrupt_training
from sacm.data.datasets import AnyData, ForecastingData
from sacm.data.scaling import cover_series, fit_scaler
from sacm.data.windows import SplitWindows
from sacm.settings import AUTO, ResolvedSettings
from sacm.strategies.base import Prepared
from sacm.strategies.combined import prepare_once
from sacm.strategies.registry import parse
from sacm.tasks.base import Task
from sacm.tasks.lengths import member_lengths


def prepare_data(settings: ResolvedSettings, data: AnyData) -> Prepared:
    """Corrupt the training part if the settings ask for it, and let the strategy prepare it.

    Values become finite. What was not measured has the weight 0 in `observed`, whatever the
    strategy has made of it.
    """
    given = corrupt_training(data, settings.contamination, seed=settings.seed)
    window = settings.input_len
    if settings.backbone == AUTO and isinstance(data, ForecastingData):
        window = member_lengths(data, window, settings.horizon)[1]  # the shortest that is repaired
    prepared = prepare_once(parse(settings.strategy), given, window=window)
    changed = prepared.data
    if not isinstance(changed, ForecastingData) or not isinstance(given, ForecastingData):
        return prepared
    missing = np.isnan(given.clean)
    if not missing.any():
        return prepared
    weights = np.ones(missing.shape, np.float32) if changed.observed is None else changed.observed
    return prepared._replace(data=replace(changed, observed=np.where(missing, 0, weights)))


def cut_windows(
    task: Task[Any], settings: ResolvedSettings, data: AnyData, prepared: AnyData
) -> SplitWindows[Any]:
    """Cut windows of the data that a strategy prepared, scaled by their training rows.

    Forecasting errors are still stated in deviations of the data as given: strategies that repair
    differently would otherwise be measured in different units.
    """
    windows = task.windows(settings, prepared)
    if prepared is data or not isinstance(data, ForecastingData):
        return windows
    scaler = windows.scaler
    given = cover_series(fit_scaler(data), data, settings.input_len)
    scaler = replace(scaler, reference=given.of_series(scaler.series).std.reshape(scaler.std.shape))
    windows = task.windows(settings, prepared, scaler=scaler)
    if settings.backbone != AUTO:
        return windows
    # Long inputs reach back into training rows: validation and test see them as predictions do.
    given_rows = prepare_data(settings.model_copy(update={"strategy": "raw"}), data).data
    seen = task.windows(settings, given_rows, scaler=scaler)
    return windows._replace(val=seen.val, test=seen.test)
