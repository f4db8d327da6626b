"""Made-up data sets under the names, and with the channels, of the benchmarks.

They lie in the compact layout that `sacm.data` finds under SACM_DATA; long series are short here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

# name: (rows, channels, frequency)
SERIES = {
    "ETTh1": (1000, 7, "h"),
    "ETTh2": (1000, 7, "h"),
    "ETTm1": (1000, 7, "15min"),
    "ETTm2": (1000, 7, "15min"),
    "Exchange Rate": (1000, 8, "D"),
    "ILI": (966, 7, "W-TUE"),
}


def write_all(folder: Path) -> None:
    """Every stand-in there is."""
    for seed, (name, (rows, channels, frequency)) in enumerate(SERIES.items()):
        values = waves(rows, channels, seed)
        dates = pd.date_range("2016-07-01", periods=rows, freq=frequency).to_numpy()
        columns = np.array([f"channel {i}" for i in range(channels)])
        np.savez(folder / f"{name}.npz", values=values, columns=columns, timestamps=dates)
    write_motions(folder)
    write_telemetry(folder)


def waves(rows: int, channels: int, seed: int) -> np.ndarray:
    """Sines with noise that comes and goes, on levels and scales of their own, `[T, C]`."""
    random = np.random.default_rng(seed)
    time = np.arange(rows)[:, None]
    noise = np.where(time % 200 < 100, 0.1, 0.6) * random.normal(size=(rows, channels))
    values = np.sin(2 * np.pi * time / random.uniform(12, 60, channels)) + noise
    return values * random.uniform(1, 5, channels) + random.uniform(-10, 10, channels) + seed


def write_motions(folder: Path) -> None:
    """BasicMotions: four classes of sines, 40 cases for training and 40 for testing."""
    random = np.random.default_rng(0)
    labels = np.array(["Badminton", "Running", "Standing", "Walking"])
    numbers = np.arange(40) % 4
    arrays: dict[str, np.ndarray] = {}
    for part in ("train", "test"):
        phase = random.uniform(0, 6, size=(40, 6, 1))
        cases = np.sin((numbers[:, None, None] + 1) * np.arange(100) / 8 + phase)
        arrays[f"X_{part}"] = cases + 0.3 * random.normal(size=cases.shape)
        arrays[f"y_{part}"] = labels[numbers]
        arrays[f"len_{part}"] = np.full(40, 100)
    np.savez(folder / "BasicMotions.npz", **arrays)


def write_telemetry(folder: Path) -> None:
    """MSL: two channel files of 55 columns, each with one anomaly in its test part."""
    train, test = waves(1200, 55, 1), waves(800, 55, 2)
    labels = np.zeros(800, dtype=np.uint8)
    for start in (150, 600):
        labels[start : start + 40] = 1
        test[start : start + 40] += 8
    np.savez(
        folder / "MSL.npz",
        train=train,
        test=test,
        labels=labels,
        segment_train=np.arange(1200) // 600,
        segment_test=np.arange(800) // 400,
        segment_names=np.array(["C-1", "D-14"]),
    )
