"""A user's own file for a task, with the options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sacm.data.datasets import AnyData
from sacm.data.own.cases import classification_data
from sacm.data.own.series import forecasting_data
from sacm.data.own.telemetry import anomaly_data
from sacm.errors import ArgumentError
from sacm.types import TaskName

Reading = dict[str, Any]
# Options whose name in Python is another.
_FORECASTING = {"time": "timestamp", "split": "ratios"}
_ANOMALY = {"time": "timestamp", "label": "label_column", "split": "train_share"}
_TWO_SHARES = "two shares (training, test) that add up to 1, such as 0.5,0.5"


def read_series_file(source: str | Path, reading: Reading) -> AnyData:
    """A file to forecast."""
    return forecasting_data(source, **rename(reading, _FORECASTING))


def read_telemetry_file(source: str | Path, reading: Reading) -> AnyData:
    """A file to search for anomalies."""
    options = rename(reading, _ANOMALY)
    if "train_share" in options:
        shares = options["train_share"]
        if len(shares) != 2 or abs(sum(shares) - 1) > 1e-6:
            raise ArgumentError(f"split must be {_TWO_SHARES}; got {tuple(shares)}.")
        options["train_share"] = shares[0]
    for name in ("target", "id", "frequency", "irregular", "scaling", "past", "future", "static"):
        if name in options:
            raise ArgumentError(f"{name} = {options[name]!r}: anomaly has no use for it.")
    return anomaly_data(source, **options)


def read_case_file(source: str | Path, reading: Reading) -> AnyData:
    """A file of cases to classify, which holds no table."""
    if reading:
        raise ArgumentError(
            f"{', '.join(reading)}: cases are read from .ts or .npz files, which need no options."
        )
    return classification_data(Path(source))


def rename(reading: Reading, names: dict[str, str]) -> Reading:
    """Options by their names in Python; one time column of several stays one."""
    options = {names.get(name, name): value for name, value in reading.items()}
    if len(options.get("timestamp", ())) == 1:
        options["timestamp"] = options["timestamp"][0]
    return options


READERS: dict[TaskName, Callable[[str | Path, Reading], AnyData]] = {
    "forecasting": read_series_file,
    "classification": read_case_file,
    "anomaly": read_telemetry_file,
}
