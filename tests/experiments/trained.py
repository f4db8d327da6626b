"""Small data of every task, and strategies compared on them by real, short runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sacm.data.datasets import (
    AnomalyData,
    ClassificationData,
    ForecastingData,
    TelemetrySegment,
    split_by_ratio,
)
from sacm.experiments.compare import Comparison, compare
from sacm.tasks import make_settings
from sacm.training import Hardware


def series() -> ForecastingData:
    """Two waves, of which the second is noisy in its second half."""
    time = np.arange(200.0)
    noise = np.random.default_rng(0).normal(size=200) * np.where(time < 100, 0.05, 0.6)
    values = np.stack([10 + 3 * np.sin(time / 4), np.cos(time / 3) + noise], axis=1)
    splits = split_by_ratio(200, (0.6, 0.2, 0.2))
    return ForecastingData("waves", values.astype(np.float32), ("calm", "noisy"), splits)


def labelled() -> ClassificationData:
    generator = np.random.default_rng(1)
    labels = np.array(["down & out", "up"])[np.arange(24) % 2]
    X = generator.normal(size=(24, 2, 16)) + (labels == "up")[:, None, None]
    X = X.astype(np.float32)
    lengths = np.full(24, 16)
    classes = ("down & out", "up")
    return ClassificationData("moves", X, labels, X[:8], labels[:8], lengths, lengths[:8], classes)


def telemetry() -> AnomalyData:
    """Two machines; the second has two anomalies in its test rows, the first has one."""
    generator = np.random.default_rng(2)
    train, test = generator.normal(size=(160, 2)), generator.normal(size=(120, 2))
    labels = np.zeros(120, dtype=np.uint8)
    for start, stop in ((20, 26), (70, 75), (100, 110)):
        labels[start:stop] = 1
        test[start:stop] += 4
    segments = (
        TelemetrySegment("m1", range(80), range(50)),
        TelemetrySegment("m2", range(80, 160), range(50, 120)),
    )
    arrays = train.astype(np.float32), test.astype(np.float32), labels
    return AnomalyData("machines", *arrays, ("load", "heat"), segments)


DATA = {"forecasting": series, "classification": labelled, "anomaly": telemetry}
LENGTHS = {
    "forecasting": {"input_len": 12, "horizon": 6},
    "classification": {},
    "anomaly": {"input_len": 10},
}


def trained(task: str, strategies: list[str], folder: Path) -> Comparison:
    data = DATA[task]()
    settings = make_settings(
        task=task,
        data=data.name,
        backbone="iTransformer",
        size="small",
        epochs=2,
        **LENGTHS[task],
    )
    quiet = Hardware(show_progress=False)
    return compare(settings, strategies, [1, 2], folder=folder, hardware=quiet, data=data)
