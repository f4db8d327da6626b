"""Test a trained network on other data than its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData, ClassificationData
from sacm.data.load import names_file, resolve
from sacm.data.windows import SplitWindows
from sacm.errors import DataError
from sacm.inference.classify import case_windows
from sacm.inference.detect import read_rows, read_telemetry, row_scores, threshold_of
from sacm.inference.forecast import read_for
from sacm.inference.trained import TrainedNetwork
from sacm.inference.uncertainty import calibration_windows
from sacm.metrics.anomaly import evaluate_scores
from sacm.metrics.registered import compute_anomaly_metrics
from sacm.tasks import Result, get_task
from sacm.tasks.yardsticks import alarm_yardsticks


def evaluate_source(trained: TrainedNetwork, source: Any) -> Result:
    """Test on all of a user's data, with the scaler and the threshold of the training data.

    Args:
        trained: The network.
        source: A file, a frame or an array: a series whose every window is forecast, rows with a
            column of labels, or cases with their classes. A data set of the catalogue: its test
            part.

    Raises:
        DataError: The data are too short, or have no labels where they are needed.
    """
    if isinstance(source, str) and not names_file(source):
        source = resolve(source, task=trained.settings.task, reading=trained.roles)
    return _EVALUATE[trained.settings.task](trained, source)


def _forecasts(trained: TrainedNetwork, source: Any) -> Result:
    data = read_for(trained, source).data
    needed = trained.shape.input_len + trained.shape.horizon
    longest = max(len(rows) for rows in data.last_rows(len(data.values)).values())
    if longest < needed:
        raise DataError(f"{data.name} has {longest} rows but a window to test needs {needed}.")
    windows = calibration_windows(trained, data)
    every = SplitWindows(windows, windows, windows)
    return _test(trained, every, data)


def _cases(trained: TrainedNetwork, source: Any) -> Result:
    data: Any = source
    if not isinstance(data, ClassificationData):
        reading = trained.settings.reading()
        data = resolve(source, task="classification", reading=reading)
    if not len(data.X_test):
        data = replace(
            data, X_test=data.X_train, y_test=data.y_train, lengths_test=data.lengths_train
        )
    data = replace(data, classes=trained.shape.classes)
    windows = case_windows(trained, data.X_test, data.encode(data.y_test))
    return _test(trained, SplitWindows(windows, windows, windows), data)


def _test(trained: TrainedNetwork, windows: SplitWindows[Any], data: Any) -> Result:
    task, settings = get_task(trained.settings.task), trained.settings
    return task.evaluate(trained.network, windows, data, settings, trained.strategy)


def _rows(trained: TrainedNetwork, source: Any) -> Result:
    threshold = threshold_of(trained)
    if isinstance(source, AnomalyData):
        rows = read_telemetry(source.test, missing="interpolate")
        labels, name = source.labels, source.name
    else:
        place = Path(source) if isinstance(source, str) else source
        rows = read_rows(trained, place)
        name = rows.name
        if rows.labels is None:
            raise DataError(f"{name} has no column of labels to test by: use `sacm predict`.")
        labels = np.empty(len(rows.labels))
        labels[rows.order] = rows.labels
    scores = row_scores(trained, rows)
    report = evaluate_scores(scores, labels, threshold, seed=trained.settings.seed)
    row = {**report.row(), **compute_anomaly_metrics(scores, labels, threshold)}
    return Result(row, report.to_dict(), len(scores), alarm_yardsticks(report).to_dict())


_EVALUATE = {"forecasting": _forecasts, "classification": _cases, "anomaly": _rows}
