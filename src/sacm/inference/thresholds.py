"""Where an alarm begins: by a quantile, by how many alarms a day are bearable, or by labels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from sacm.data.load import names_file, resolve
from sacm.errors import ArgumentError, DataError
from sacm.inference.detect import read_rows, row_scores
from sacm.inference.trained import Array, TrainedNetwork
from sacm.metrics.pointwise import best_f1, quantile_threshold
from sacm.tasks import get_task
from sacm.tasks.anomaly import step_scores

_WAYS = "a number, quantile=0.99, alarms-a-day=2 or labels=FILE"
_CANDIDATES = 2000


class Threshold(NamedTuple):
    """A threshold and how it was chosen, in words."""

    value: float
    reason: str


def choose_threshold(trained: TrainedNetwork, way: str) -> Threshold:
    """Choose the threshold of a detector.

    Args:
        trained: A network for anomaly detection.
        way: A number, or `quantile=0.99` (of the validation scores), `alarms-a-day=2` (stretches of
            alarms in the validation rows) or `labels=FILE` (best F1 on rows with labels).

    Raises:
        ArgumentError: The way is none of these, or the network is of another task.
        DataError: The rows that are needed are not at hand, or have no times or labels.
    """
    if trained.settings.task != "anomaly":
        raise ArgumentError("a threshold is for anomaly detection.")
    name, separator, text = way.partition("=")
    if separator and name == "labels":
        return _by_labels(trained, text)
    try:
        number = float(text if separator else name)
    except ValueError:
        raise ArgumentError(f"--threshold {way!r}: expected {_WAYS}.") from None
    if not separator and np.isfinite(number):
        return Threshold(number, "as given")
    if name == "quantile":
        value = quantile_threshold(validation_scores(trained), quantile=number)
        return Threshold(value, f"the {number:g} quantile of the validation scores")
    if name == "alarms-a-day" and number > 0:
        return _by_rate(trained, number)
    raise ArgumentError(f"--threshold {way!r}: expected {_WAYS}.")


def validation_scores(trained: TrainedNetwork) -> Array:
    """Scores of the validation rows of the training data, which must be at hand."""
    settings = trained.settings
    data = resolve(settings.data, task="anomaly", reading=settings.reading())
    windows = get_task("anomaly").windows(settings, data, scaler=trained.scaler)
    scores = step_scores(trained.network, windows.val, trained.settings, trained.strategy)
    kept: Array = scores[~np.isnan(scores)]
    return kept


def count_stretches(alarms: Array) -> int:
    """How many stretches of neighbouring rows are alarms."""
    return int(alarms[0]) + int((alarms[1:] & ~alarms[:-1]).sum()) if len(alarms) else 0


def _by_rate(trained: TrainedNetwork, wanted: float) -> Threshold:
    """The lowest threshold at which, and above which, validation has no more alarms a day."""
    scores = validation_scores(trained)
    days = len(scores) / rows_a_day(trained)
    levels = np.unique(np.quantile(scores, np.linspace(0, 1, _CANDIDATES)))[::-1]
    chosen = float(np.nextafter(levels[0], np.inf))
    for level in levels:
        if count_stretches(scores >= level) > wanted * days:
            break
        chosen = float(level)
    found = count_stretches(scores >= chosen) / days
    return Threshold(
        chosen,
        f"{found:.3g} alarms a day in the validation rows ({days:.3g} days), wanted {wanted:g}",
    )


def rows_a_day(trained: TrainedNetwork) -> float:
    """How many rows of the training data make a day."""
    source = trained.settings.data
    times = None
    if names_file(source):
        times = read_rows(trained, source).times
    if times is None or len(times) < 2:
        raise DataError(f"{source} has no timestamps to count days by: use quantile=0.99 instead.")
    step = np.median(np.diff(times).astype("timedelta64[ns]").astype(np.int64)) / 1e9
    return float(86_400 / step)


def _by_labels(trained: TrainedNetwork, source: str) -> Threshold:
    rows = read_rows(trained, Path(source))
    if rows.labels is None:
        raise DataError(f"{source} has no column of labels: name it 'label', with 0 and 1.")
    labels = np.empty(len(rows.labels))
    labels[rows.order] = rows.labels
    best = best_f1(row_scores(trained, rows), labels)
    if best.threshold is None:
        raise DataError(f"{source} cannot choose a threshold: {best.reason}.")
    return Threshold(best.threshold, f"best F1 ({best.f1:.3g}) on the labels of {source}")
