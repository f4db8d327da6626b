"""Anomaly detection with a trained network: a score and an alarm for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.batches import TelemetryWindows, window_starts
from sacm.data.datasets import AnomalyData
from sacm.data.scaling import fill_gaps
from sacm.errors import ArgumentError, DataError
from sacm.inference.predictor import Answer, Array, Predictor, warn
from sacm.metrics.anomaly import quantile_threshold
from sacm.settings import ReadOptions
from sacm.tasks import Result, get_task
from sacm.tasks.anomaly import judge_scores, step_scores
from sacm.tasks.base import check_trained_columns

if TYPE_CHECKING:
    from sacm.data.read import Table

_NOT_READ = ("split", "target", "id", "columns", "scaling")  # options of other uses


def predict(predictor: Predictor, data: Any) -> Any:
    """Score and alarm of every row, as a pandas frame with the index of the data."""
    answer = tabulate(predictor, data)
    warn(answer.notes)
    frame = answer.frame[["score", "alarm"]]
    return frame.set_index(data.index) if hasattr(data, "index") else frame


def tabulate(predictor: Predictor, data: Any) -> Answer:
    """Row number, time, score, threshold and alarm of every row, or of a data set's test rows."""
    import pandas as pd

    threshold: Any = predictor.threshold  # every detector has one
    times, index = dict[str, Any](), None
    notes, understood = tuple[str, ...](), tuple[str, ...]()
    if isinstance(data, AnomalyData):
        scores, values, columns = _test_scores(predictor, data)[0], data.test, data.columns
    else:
        rows = read_rows(predictor, data)
        scores, values = row_scores(predictor, rows), _in_order(rows, rows.values)
        columns, notes, understood = rows.columns or (), rows.notes, rows.understood
        if rows.times is not None:
            index = _in_order(rows, rows.times)
            times[rows.form.time or "time"] = rows.form.write_times(index)
    numbers = {"row": range(1, len(scores) + 1), **times, "score": scores, "threshold": threshold}
    frame = pd.DataFrame({**numbers, "alarm": (scores >= threshold).astype(np.int64)})
    index = np.arange(1, len(values) + 1) if index is None else index
    shown = pd.DataFrame(values, index=index, columns=list(columns) or None)
    return Answer(frame, notes, understood, values=shown)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the alarms of a data set's test rows, or of all rows of a source with labels."""
    threshold: Any = predictor.threshold
    settings = predictor.settings
    if isinstance(source, AnomalyData):
        segments = source.segment_names()
        scores, windows = _test_scores(predictor, source)
        result = judge_scores(scores, source.labels, threshold, settings, segments=segments)
        return replace(result, evaluated=windows)
    rows = read_rows(predictor, Path(source) if isinstance(source, str) else source)
    if rows.labels is None:
        raise DataError(f"{rows.name} has no column of labels to test by: name it (--label).")
    labels = _in_order(rows, np.asarray(rows.labels, dtype=np.float64))
    return judge_scores(row_scores(predictor, rows), labels, threshold, settings)


def _test_scores(predictor: Predictor, data: AnomalyData) -> tuple[Array, int]:
    """A score for every test row, and the number of windows."""
    check_trained_columns(data.name, data.columns, predictor.shape.columns)
    windows = get_task("anomaly").windows(predictor.settings, data, scaler=predictor.scaler).test
    return step_scores(predictor.trained, windows), len(windows)


def read_rows(predictor: Predictor, data: Any) -> Table:
    """Read rows as those that a detector was trained on were read."""
    return read_telemetry(data, predictor.settings.reading(), columns=predictor.shape.columns)


def read_telemetry(
    source: Any, options: Mapping[str, Any], *, columns: Sequence[str] | None = None
) -> Table:
    """Rows of a file, frame or array, NaN in gaps; a column of labels is left out."""
    from sacm.data.read import keep_present, load_source, read_table

    name = str(source) if isinstance(source, str | Path) else "data"
    chosen = ReadOptions.of({key: value for key, value in options.items() if key not in _NOT_READ})
    loaded = load_source(source, chosen, name=name)
    chosen = keep_present(loaded, chosen)
    wanted = columns or options.get("columns")
    if wanted and not isinstance(loaded.content, np.ndarray):
        chosen = chosen.model_copy(update={"columns": tuple(wanted)})
    # Rows that a grid lacks have no place in the answer, so none are inserted.
    table = read_table(loaded, chosen, grid=False)
    notes, count = table.notes, int(np.isnan(table.values).sum())
    if count:
        notes += (f"{count:,} missing values were interpolated.",)
    return replace(table, values=np.asarray(table.values, dtype=np.float32), notes=notes)


def _in_order(rows: Table, values: Array) -> Array:
    """Values of rows `[T, …]` in the order of the user's table."""
    ordered = np.empty_like(values)
    ordered[rows.order] = values
    return ordered


def row_scores(predictor: Predictor, rows: Table) -> Array:
    """A score `[T]` for every row, the mean over its windows, in the order of the user's table."""
    length, scaler, values = predictor.shape.input_len, predictor.scaler, fill_gaps(rows.values)
    predictor.check_channels(values.shape[1], rows.name)
    if len(values) < length:
        raise DataError(f"{rows.name} has {len(values)} rows, fewer than one window of {length}.")
    stride = min(predictor.settings.stride, length)
    starts = window_starts([range(len(values))], length, stride=stride, cover=True)
    windows = TelemetryWindows(scaler.transform(values), length, starts=starts, scaler=scaler)
    return _in_order(rows, step_scores(predictor.trained, windows, order=rows.order))


def choose_threshold(predictor: Predictor, way: str | float) -> Predictor:
    """The detector with another threshold: a score, or `quantile=0.99` of the validation scores."""
    if predictor.calibration is None or predictor.settings.task != "anomaly":
        raise ArgumentError("a threshold is for anomaly detection.")
    name, _, text = str(way).rpartition("=")
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number) or name not in ("", "quantile") or (name and not 0 < number < 1):
        raise ArgumentError(f"threshold {way!r}: expected a number or quantile=0.99.")
    if name:
        scores = predictor.calibration.tensors["scores"].numpy()
        number = quantile_threshold(scores, quantile=number)
    stored = predictor.calibration
    changed = stored._replace(text={**stored.text, "threshold": repr(float(number))})
    return replace(predictor, calibration=changed)
