"""Anomaly detection with a trained network: a score and an alarm for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sacm.backbones.base import DetectorNetwork
from sacm.data.batches import Series, TelemetryWindows, window_starts
from sacm.data.datasets import AnomalyData, hold_out_tail
from sacm.data.scaling import fill_gaps
from sacm.errors import ArgumentError, DataError
from sacm.inference.predictor import (
    Answer,
    Array,
    Predictor,
    as_tensor,
    check_finite,
    is_array,
    like,
    warn,
)
from sacm.metrics.intervals import read_labels
from sacm.metrics.pointwise import best_cut, quantile_threshold
from sacm.settings import ReadOptions
from sacm.tasks import Result, get_task
from sacm.tasks.anomaly import flag, judge_scores, step_scores
from sacm.tasks.base import check_trained_columns

if TYPE_CHECKING:
    from sacm.data.read import Table

_NOT_READ = ("split", "target", "id", "columns", "scaling")  # options of other uses
_CANDIDATES = 2000  # thresholds that are tried to reach a rate of alarms


class Alarms(NamedTuple):
    """A score for every row, and 1 where it reaches the threshold, 0 elsewhere."""

    score: Any
    alarm: Any


def predict(predictor: Predictor, data: Any) -> Any:
    """Scores and alarms: `Alarms` for arrays and tensors, otherwise a frame like the data.

    Rows `[T, C]` get one score each; windows `[B, L, C]` are scored one by one, `[B, L]`.
    """
    if is_array(data):
        if data.ndim == 3:
            scores = _window_scores(predictor, data)
        else:
            values = as_tensor(data).cpu().numpy().reshape(len(data), -1)
            warn(_gap_notes(values))
            scores = score_values(predictor, fill_gaps(values), name="data")
        alarms = flag(scores, threshold_of(predictor))
        return Alarms(*(like(torch.from_numpy(each), data) for each in (scores, alarms)))
    answer = tabulate(predictor, data)
    warn(answer.notes)
    frame = answer.frame[["score", "alarm"]]
    if type(data).__module__.partition(".")[0] == "polars":
        import polars as pl

        return pl.from_pandas(frame)
    return frame.set_index(data.index) if hasattr(data, "index") else frame


def tabulate(predictor: Predictor, data: Any) -> Answer:
    """Row number, time, score, threshold and alarm of every row, or of a data set's test rows."""
    import pandas as pd

    threshold, times = threshold_of(predictor), {}
    notes, understood = tuple[str, ...](), tuple[str, ...]()
    if isinstance(data, AnomalyData):
        scores, values, columns = _test_scores(predictor, data)[0], data.test, data.columns
    else:
        rows = read_rows(predictor, data)
        scores, values = row_scores(predictor, rows), in_order(rows, rows.values)
        columns, notes, understood = rows.columns or (), rows.notes, rows.understood
        if rows.times is not None:
            times[rows.form.time or "time"] = rows.form.write_times(in_order(rows, rows.times))
    numbers = {"row": range(1, len(scores) + 1), **times, "score": scores, "threshold": threshold}
    frame = pd.DataFrame({**numbers, "alarm": flag(scores, threshold)})
    shown = pd.DataFrame(values, columns=list(columns) or None)
    return Answer(frame, notes, understood, values=shown)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the alarms of a data set's test rows, or of all rows of a source with labels."""
    threshold, settings = threshold_of(predictor), predictor.settings
    if isinstance(source, AnomalyData):
        segments = source.segment_names()
        scores, windows = _test_scores(predictor, source)
        result = judge_scores(scores, source.labels, threshold, settings, segments=segments)
        return replace(result, evaluated=windows)
    rows = read_rows(predictor, Path(source) if isinstance(source, str) else source)
    return judge_scores(row_scores(predictor, rows), _labels(rows), threshold, settings)


def _window_scores(predictor: Predictor, windows: Any) -> Array:
    """A score for each step of each window `[B, L, C]` in raw units, `[B, L]`."""
    network, kind = predictor.network, predictor.settings.score
    assert isinstance(network, DetectorNetwork)
    scaled = predictor.scale(windows)
    scores = predictor.run(lambda x: network.anomaly_scores(x, score=kind), scaled)
    check_finite(scores, "the anomaly score of window {} is not finite")
    return scores.numpy()


def _test_scores(predictor: Predictor, data: AnomalyData) -> tuple[Array, int]:
    """A score for every test row, and the number of windows."""
    check_trained_columns(data.name, data.columns, predictor.shape.columns)
    windows = get_task("anomaly").windows(predictor.settings, data, scaler=predictor.scaler).test
    return step_scores(predictor.trained, windows), len(windows)


def read_rows(predictor: Predictor, data: Any) -> Table:
    """Read rows as those that a detector was trained on were read."""
    return read_telemetry(data, predictor.settings.reading(), columns=predictor.shape.columns)


def read_telemetry(
    source: Any,
    options: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    held_out: float = 0.0,
) -> Table:
    """Rows of a file, frame or array without gaps; a column of labels is left out.

    No gap is filled from the share `held_out` of the rows, the last ones.
    """
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
    values = fill_gaps(table.values, hold_out_tail(len(table.values), held_out))
    notes = (*table.notes, *_gap_notes(table.values))
    return replace(table, values=np.ascontiguousarray(values, dtype=np.float32), notes=notes)


def _gap_notes(values: Array) -> tuple[str, ...]:
    """Say how many values were missing, if any."""
    count = int(np.isnan(values).sum())
    return (f"{count:,} missing values were interpolated.",) if count else ()


def in_order(rows: Table, values: Array) -> Array:
    """Values of rows `[T, …]` in the order of the user's table."""
    ordered = np.empty_like(values)
    ordered[rows.order] = values
    return ordered


def row_scores(predictor: Predictor, rows: Table) -> Array:
    """A score `[T]` for every row, in the order of the user's table."""
    scores = score_values(predictor, rows.values, name=rows.name, order=rows.order)
    return in_order(rows, scores)


def score_values(
    predictor: Predictor, values: Array, *, name: str, order: Array | None = None
) -> Array:
    """A score for every row of values `[T, C]` without gaps: the mean over its windows, `[T]`.

    Errors call the values by `name`, and rows by the numbers `order` if there are some.
    """
    length, scaler, settings = predictor.shape.input_len, predictor.scaler, predictor.settings
    predictor.check_channels(values.shape[1], name)
    if len(values) < length:
        raise DataError(f"{name} has {len(values)} rows, fewer than one window of {length}.")
    rows = [range(len(values))]
    starts = window_starts(rows, length, stride=min(settings.stride, length), cover=True)
    windows = TelemetryWindows(Series(values, scaler), starts, length=length, scaler=scaler)
    return step_scores(predictor.trained, windows, order=order)


def _labels(rows: Table) -> Array:
    """The labels of rows, in the order of the user's table."""
    if rows.labels is None:
        raise DataError(
            f"{rows.name} has no column of labels to test by: name it with label= (--label)."
        )
    return in_order(rows, np.asarray(rows.labels, dtype=np.float64))


def threshold_of(predictor: Predictor) -> float:
    """The threshold of a detector."""
    assert predictor.threshold is not None  # every detector is calibrated when it is trained
    return predictor.threshold


def validation_scores(predictor: Predictor) -> Array:
    """The scores `[T]` of the validation rows, which thresholds are chosen by."""
    assert predictor.calibration is not None
    scores: Array = predictor.calibration.tensors["scores"].numpy()
    return scores


def choose_threshold(predictor: Predictor, way: str, data: Any = None) -> tuple[float, str]:
    """Choose the threshold of a detector, and say how.

    Args:
        predictor: A network for anomaly detection.
        way: A number, or `quantile=0.99` (of the validation scores), `alarms-a-day=2` (segments of
            alarms in the validation rows) or `labels=FILE` (best F1 on rows with labels).
        data: A source with times, by which `alarms-a-day` knows how many rows make a day.
    """
    if predictor.settings.task != "anomaly":
        raise ArgumentError("a threshold is for anomaly detection.")
    name, separator, text = way.partition("=")
    if separator and name == "labels":
        rows = read_rows(predictor, Path(text))
        labelled = read_labels(_labels(rows))
        if labelled.problem:
            raise DataError(f"{text} cannot choose a threshold: {labelled.problem}.")
        f1, threshold = best_cut(row_scores(predictor, rows), labelled.truth)
        return threshold, f"best F1 ({f1:.3g}) on the labels of {text}"
    try:
        number = float(text if separator else name)
    except ValueError:
        number = np.nan
    if not separator and np.isfinite(number):
        return number, "as given"
    scores = validation_scores(predictor)
    if name == "quantile" and 0 < number < 1:
        value = quantile_threshold(scores, quantile=number)
        return value, f"the {number:g} quantile of the validation scores"
    if name == "alarms-a-day" and number > 0:
        days = len(scores) / _rows_a_day(predictor, data)
        value, rate = _by_rate(scores, number, days)
        said = f"{rate:.3g} alarms a day in the validation rows ({days:.3g} days)"
        return value, f"{said}, wanted {number:g}"
    ways = "a number, quantile=0.99, alarms-a-day=2 or labels=FILE"
    raise ArgumentError(f"threshold {way!r}: expected {ways}.")


def _by_rate(scores: Array, wanted: float, days: float) -> tuple[float, float]:
    """The lowest threshold from which on there are no more alarms a day, and how many there are."""
    levels = np.unique(np.quantile(scores, np.linspace(0, 1, _CANDIDATES)))[::-1]
    chosen, rate = float(np.nextafter(levels[0], np.inf)), 0.0
    for level in levels:
        begun = np.diff(scores >= level, prepend=False) & (scores >= level)  # segments of alarms
        if begun.sum() / days > wanted:
            break
        chosen, rate = float(level), float(begun.sum() / days)
    return chosen, rate


def _rows_a_day(predictor: Predictor, data: Any) -> float:
    """How many rows of the data make a day."""
    times = None
    if data is not None and not isinstance(data, AnomalyData):
        times = read_rows(predictor, data).times
    if times is None or len(times) < 2:
        raise DataError("the data have no times to count days by: use quantile=0.99 instead.")
    return float(np.timedelta64(1, "D") / np.median(np.diff(times)))
