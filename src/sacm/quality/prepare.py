"""Data sets repaired for training: nothing of a later split is looked at, test targets stay."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, ForecastingData
from sacm.quality.guard import Guard
from sacm.quality.recording import read_recording


class Repaired(NamedTuple):
    """A data set with repaired training rows, and the share of them that was repaired."""

    data: AnyData
    share: float


def repair_for_training(data: AnyData, guard: Guard) -> Repaired:
    """Repair the rows that a network learns from.

    Forecasting: training rows and validation rows, each by themselves; test rows stay as they are.
    Classification: every case by itself.
    Anomaly detection: training rows; test rows are never touched.

    Args:
        data: The data set.
        guard: Fitted on its training part.

    Returns:
        The data set with repaired rows, targets weighed by their reliability, and the share of
        training values that was repaired.
    """
    if isinstance(data, ForecastingData):
        return _forecasting(data, guard)
    recording = read_recording(data)
    if isinstance(data, ClassificationData):
        quality = guard.judge(recording)
        return Repaired(quality.repaired, float(quality.changed.mean()))
    assert isinstance(data, AnomalyData)
    quality = guard.judge(recording.until(len(data.train)))
    train = np.where(quality.changed, quality.values, quality.recording.values)
    return Repaired(
        replace(data, train=train.astype(data.train.dtype)), float(quality.changed.mean())
    )


def _forecasting(data: ForecastingData, guard: Guard) -> Repaired:
    """Training and validation rows, each by themselves; test rows obey rules and nothing else."""
    stop = data.splits.val.stop
    recording = read_recording(data)
    values, weights = data.values.copy(), np.isfinite(recording.values).astype(np.float32)
    against = guard.breaks_rules(data)
    against[:stop] = False
    values[against], weights[against] = np.nan, 0.0
    quality = guard.judge(recording.until(stop))
    measured = np.isfinite(quality.recording.values)
    values[:stop] = np.where(quality.changed, quality.values, values[:stop])
    weights[:stop] = np.where(measured, quality.reliability, 0.0)
    observed = weights if (weights < 1).any() else data.observed
    share = float(quality.changed.mean()) if quality.changed.size else 0.0
    return Repaired(replace(data, values=values, observed=observed), share)
