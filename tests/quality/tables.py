"""A broken table and its healthy copy, in every form that people bring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from sacm.data.datasets import AnomalyData, ForecastingData, split_by_ratio

ROWS, GAP, STUCK, SPIKE = 400, slice(60, 66), slice(150, 180), 250


def healthy(rows: int = ROWS, channels: int = 2, seed: int = 0) -> np.ndarray:
    """Waves of 24 rows with noise, `[rows, channels]` float64."""
    generator = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(rows)[:, None] / 24 + np.arange(channels)
    return np.sin(phase) + 0.1 * generator.standard_normal((rows, channels)) + 0.1


def broken(rows: int = ROWS, channels: int = 2, seed: int = 0) -> np.ndarray:
    """The same with a gap and a spike in the first channel and a stuck stretch in the second."""
    values = healthy(rows, channels, seed)
    values[GAP, 0] = np.nan
    values[SPIKE, 0] = 9.0
    values[STUCK, -1] = values[STUCK.start, -1]
    return values


def truth(rows: int = ROWS, channels: int = 2) -> np.ndarray:
    """What is broken in it."""
    marks = np.zeros((rows, channels), bool)
    marks[GAP, 0] = marks[SPIKE, 0] = marks[STUCK, -1] = True
    return marks


def hours(rows: int = ROWS) -> pd.DatetimeIndex:
    return pd.date_range("2024-01-01", periods=rows, freq="h")


def wide(values: np.ndarray | None = None) -> pd.DataFrame:
    """A frame with a column of times."""
    values = broken() if values is None else values
    frame = pd.DataFrame(values, columns=["load", "heat"][: values.shape[1]])
    frame.insert(0, "date", hours(len(frame)))
    return frame


def long() -> pd.DataFrame:
    """Two series in one long table, rows of both mixed."""
    values = broken()
    parts = [
        pd.DataFrame({"unique_id": name, "ds": hours(), "y": values[:, place]})
        for place, name in enumerate(("a", "b"))
    ]
    mixed: pd.DataFrame = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0)
    return mixed


def forecasting(values: np.ndarray | None = None) -> ForecastingData:
    values = broken() if values is None else values
    observed = np.isfinite(values)
    filled = pd.DataFrame(values).interpolate().to_numpy(np.float32)
    splits = split_by_ratio(len(values))
    return ForecastingData("waves", filled, ("load", "heat"), splits, observed=observed)


def anomaly() -> AnomalyData:
    train, test = np.nan_to_num(broken()).astype(np.float32), healthy(200).astype(np.float32)
    test[100:110] = 7.0
    labels = np.zeros(200, np.int64)
    labels[100:110] = 1
    return AnomalyData("pump", train, test, labels, ("load", "heat"))


def _file(name: str, write: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write(folder / name)
        return folder / name

    return make


def _polars(_: Path) -> Any:
    import polars

    return polars.from_pandas(wide())


FORMS: dict[str, Callable[[Path], Any]] = {
    "frame with a time column": lambda _: wide(),
    "frame with a time index": lambda _: wide().set_index("date"),
    "frame without times": lambda _: wide().drop(columns="date"),
    "frame with numbers as names": lambda _: pd.DataFrame(broken()),
    "polars": _polars,
    "array": lambda _: broken(),
    "array of float32": lambda _: broken().astype(np.float32),
    "tensor": lambda _: torch.from_numpy(broken()),
    "masked array": lambda _: np.ma.masked_invalid(broken()),
    "lists": lambda _: broken().tolist(),
    "CSV": _file("a.csv", lambda path: wide().to_csv(path, index=False)),
    "Parquet": _file("a.parquet", lambda path: wide().to_parquet(path)),
    "npy": _file("a.npy", lambda path: np.save(path, broken())),
    "npz": _file("a.npz", lambda path: np.savez(path, values=broken())),
}
"""Two channels, broken as `truth` says, by the name of the form."""
