"""Data sets repaired for training: nothing of a later split is looked at, test targets stay."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ForecastingData
from sacm.quality.guard import Guard
from sacm.quality.recording import read_recording


class Repaired(NamedTuple):
    """A data set with repaired training rows, and the share of them that was repaired."""

    data: AnyData
    share: float


def repair_for_training(data: AnyData, guard: Guard) -> Repaired:
    """Repair the rows that a network learns from, with a guard fitted on its training part.

    Forecasting: training rows and validation rows, each by themselves, with targets weighed by
    their reliability; of test rows what breaks a rule is missing, and nothing else changes.
    Classification: every case by itself. Anomaly detection: training rows alone.
    """
    recording = read_recording(data)
    if isinstance(data, ForecastingData):
        recording = recording.until(data.splits.val.stop)
    elif isinstance(data, AnomalyData):
        recording = recording.until(len(data.train))
    quality = guard.judge(recording)
    share = float(quality.changed.mean()) if quality.changed.size else 0.0
    if isinstance(data, AnomalyData):
        train = np.where(quality.changed, quality.values, recording.values)
        return Repaired(replace(data, train=train.astype(data.train.dtype)), share)
    if not isinstance(data, ForecastingData):
        return Repaired(quality.repaired, share)
    stop = len(recording.values)
    values, measured = data.values.copy(), np.isfinite(read_recording(data).values)
    ruled = guard.breaks_rules(data)
    ruled[:stop] = False
    values[ruled] = np.nan
    values[:stop] = np.where(quality.changed, quality.values, values[:stop])
    weights = np.where(measured & ~ruled, 1, 0).astype(np.float32)
    weights[:stop] *= quality.reliability
    observed = weights if (weights < 1).any() else data.observed
    return Repaired(replace(data, values=values, observed=observed), share)
