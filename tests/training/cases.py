"""Small runs of every task, on data made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sacm import tasks
from sacm.data import AnomalyData, forecasting_data
from sacm.data.cases import from_padded
from sacm.data.datasets import AnyData
from sacm.settings import RunSettings
from sacm.training import Hardware, Run, train

TASKS = ("forecasting", "classification", "anomaly")
BACKBONES = {"forecasting": "PatchTST", "classification": "InceptionTime", "anomaly": "TranAD"}
QUIET = Hardware(show_progress=False)


def waves(rows: int, channels: int, seed: int = 0) -> np.ndarray:
    """Sines of several periods with noise, `[T, C]`."""
    random = np.random.default_rng(seed)
    time = np.arange(rows)[:, None] / np.array([12, 17, 23, 31])[:channels]
    return np.sin(2 * np.pi * time) + 0.2 * random.normal(size=(rows, channels))


def make_data(task: str) -> AnyData:
    """A few hundred rows or a few dozen cases."""
    if task == "forecasting":
        return forecasting_data(waves(400, 3), name="waves")
    if task == "classification":
        random = np.random.default_rng(0)
        labels = np.arange(48) % 3
        phase = random.uniform(0, 6, size=(48, 2, 1))
        cases = np.sin((labels[:, None, None] + 1) * np.arange(32) / 5 + phase)
        cases = cases + 0.1 * random.normal(size=cases.shape)
        names = {"X_train": cases[:36], "y_train": labels[:36]}
        names |= {"X_test": cases[36:], "y_test": labels[36:]}
        return from_padded(names, "cases")
    values = waves(700, 3)
    values[560:570] += 4
    labels = np.zeros(300, dtype=np.uint8)
    labels[160:170] = 1
    values = values.astype(np.float32)
    return AnomalyData("telemetry", values[:400], values[400:], labels, ("0", "1", "2"))


def make_settings(task: str, **changes: Any) -> RunSettings:
    """Three epochs of a small network."""
    values: dict[str, Any] = {
        "task": task,
        "data": "memory",
        "backbone": BACKBONES[task],
        "size": "small",
        "strategy": "sacm",
        "epochs": 3,
        "seed": 7,
    }
    if task == "forecasting":
        values |= {"input_len": 24, "horizon": 8}
    if task == "anomaly":
        values |= {"input_len": 20, "stride": 2}
    return tasks.make_settings(**{**values, **changes})


def small_run(task: str, folder: Path, **changes: Any) -> Run:
    """Train it."""
    return train(
        make_settings(task, **changes), folder=folder, hardware=QUIET, data=make_data(task)
    )
