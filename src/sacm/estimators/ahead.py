"""What follows the end of a series, in its own units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.data.calendar import future_timestamps, stamp_features
from sacm.data.datasets import ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.errors import ArgumentError, DataError, SACMError
from sacm.settings import ResolvedSettings
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, evaluating


class Forecast(NamedTuple):
    """Forecasts of every series and when they are for."""

    series: list[str]
    values: np.ndarray  # [S, H, C]
    times: np.ndarray | None  # [S, H]


def forecast_ahead(
    model: Backbone,
    data: ForecastingData,
    *,
    settings: ResolvedSettings,
    strategy: Strategy,
    scaler: ChannelScaler,
    calendar: bool,
) -> Forecast:
    """Forecast the steps after the last row of every series in `data`.

    `calendar` says whether the network takes calendar features.
    """
    rows = last_rows(data, settings.input_len)
    positions = np.stack(list(rows.values()))  # [S, L]
    x = torch.from_numpy(scaler.transform(data.values[positions]))  # [S, L, C]
    times = future_times(data, positions, settings.horizon)
    stamps = None
    if calendar:
        stamps = calendar_features(data, positions, times)
    parts = []
    with evaluating(model) as device:
        for start in range(0, len(x), EVALUATION_BATCH):
            part = slice(start, start + EVALUATION_BATCH)
            inputs = strategy.inputs(x[part].to(device))
            arguments = (inputs,) if stamps is None else (inputs, stamps[part].to(device))
            parts.append(model(*arguments).float().cpu())
    values = torch.cat(parts).numpy()
    if not np.isfinite(values).all():
        name = list(rows)[int(np.argwhere(~np.isfinite(values))[0][0])]
        raise SACMError(f"the forecast of {name} is not finite: look for extreme values in it.")
    return Forecast(list(rows), scaler.inverse(values), times)


def last_rows(data: ForecastingData, count: int) -> dict[str, np.ndarray]:
    """Positions of the last `count` rows of every series; none may be shorter."""
    rows = data.last_rows(count)
    for name, positions in rows.items():
        if len(positions) < count:
            where = f"series {name!r} of {data.name}" if len(rows) > 1 else data.name
            raise DataError(
                f"{where} has {len(positions)} rows but a forecast starts from the last {count}."
            )
    return rows


def future_times(data: ForecastingData, positions: np.ndarray, horizon: int) -> np.ndarray | None:
    """Timestamps `[S, H]` that follow, where there are any."""
    if data.timestamps is None:
        return None
    stamps = data.timestamps[positions]  # [S, L]
    return np.stack([future_timestamps(own, horizon, frequency=data.frequency) for own in stamps])


def calendar_features(
    data: ForecastingData, positions: np.ndarray, times: np.ndarray | None
) -> Tensor:
    """Calendar position of inputs and targets, `[S, L + H, 4]`."""
    if data.timestamps is None or times is None:
        raise ArgumentError(
            f"{data.name} has no timestamps, but the network was trained with calendar features."
        )
    stamps = np.concatenate([data.timestamps[positions], times], axis=1)
    return torch.from_numpy(np.stack([stamp_features(own) for own in stamps]))
