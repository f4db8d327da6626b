"""Anomaly detection with a trained network: a score and an alarm for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from sacm.data.batches import Series, TelemetryWindows, covering_starts
from sacm.data.datasets import AnomalyData
from sacm.data.gaps import Policy
from sacm.data.load import names_file, resolve
from sacm.data.splits import hold_out_tail
from sacm.data.tables.source import keep_present, load_source
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError
from sacm.inference.answer import TableAnswer, warn_of
from sacm.inference.trained import Array, TrainedNetwork, as_tensor, is_array, like
from sacm.tasks import get_task
from sacm.tasks.anomaly import flag, step_scores

_READING = ("time", "date_order", "zone", "ignore", "label")


class Alarms(NamedTuple):
    """A score for every row, and 1 where it reaches the threshold, 0 elsewhere."""

    score: Any
    alarm: Any


class Scored(NamedTuple):
    """Scores `[T]` of the rows of a source, its times if it has any, and what was found in it."""

    scores: Array
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()
    times: Any = None  # a pandas column, written as the source wrote it
    time: str = "time"  # its name


def predict_alarms(trained: TrainedNetwork, data: Any) -> Any:
    """Scores and alarms: `Alarms` for arrays and tensors, otherwise a frame like the data.

    Rows `[T, C]` get one score each; windows `[B, L, C]` are scored one by one, `[B, L]`.
    """
    threshold = threshold_of(trained)
    if is_array(data):
        if data.ndim == 3:
            scores = trained.scores(data)
            return Alarms(scores, _as(flag(scores, threshold), data))
        scored = score_source(trained, data)
        warn_of(scored.notes)
        alarms = flag(scored.scores, threshold)
        return Alarms(_as(scored.scores, data), _as(alarms, data))
    answer = tabulate_alarms(trained, data)
    warn_of(answer.notes)
    frame = answer.frame[["score", "alarm"]]
    if type(data).__module__.partition(".")[0] == "polars":
        import polars as pl

        return pl.from_pandas(frame)
    return frame.set_index(data.index) if hasattr(data, "index") else frame


def tabulate_alarms(trained: TrainedNetwork, data: Any) -> TableAnswer:
    """Row number, time, score, threshold and alarm of every row, as a pandas frame."""
    import pandas as pd

    threshold = threshold_of(trained)
    scored = score_source(trained, data)
    frame = pd.DataFrame(
        {
            "row": range(1, len(scored.scores) + 1),
            "score": scored.scores,
            "threshold": threshold,
            "alarm": flag(scored.scores, threshold),
        }
    )
    if scored.times is not None and scored.time not in frame:
        frame.insert(1, scored.time, scored.times)
    return TableAnswer(frame, scored.notes, scored.understood)


def score_source(trained: TrainedNetwork, data: Any) -> Scored:
    """A score for every row of a file, frame or array, or for the test rows of a data set."""
    if isinstance(data, str) and not names_file(data):
        data = resolve(data, task="anomaly")
    if isinstance(data, AnomalyData):
        trained.shape.check_columns(data.name, data.columns)
        task = get_task("anomaly")
        windows = task.windows(trained.settings, data, scaler=trained.scaler)
        return Scored(
            step_scores(trained.network, windows.test, trained.settings, trained.strategy)
        )
    if is_array(data):
        data = as_tensor(data).cpu().numpy()
    rows = read_rows(trained, data)
    times = None
    if rows.times is not None:
        own = np.empty_like(rows.times)
        own[rows.order] = rows.times  # as in the user's table, like the scores
        times = rows.form.write_times(own)
    understood = tuple(rows.understood())
    name = rows.form.time or "time"
    return Scored(row_scores(trained, rows), rows.notes, understood, times, name)


def read_rows(trained: TrainedNetwork, data: Any) -> Table:
    """Read rows as those that a detector was trained on were read."""
    options = trained.settings.reading()
    return read_telemetry(
        data,
        columns=trained.shape.columns,
        missing=options.get("missing", "interpolate"),
        reading=options,
    )


def read_telemetry(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    missing: Policy,
    held_out: float = 0.0,
    reading: Mapping[str, Any] | None = None,
) -> Table:
    """Rows of a file, frame or array; a column of labels is left out, `columns` chooses others.

    No gap is filled from the last rows, the `held_out` share. `reading` holds options of a run by
    their names on the command line.
    """
    given = dict(reading or {})
    loaded = load_source(
        source,
        str(source) if isinstance(source, str | Path) else "data",
        given.get("decimal"),
    )
    options = keep_present(loaded, {key: given[key] for key in _READING if key in given})
    # Rows that a grid lacks have no place in the answer, so none are inserted.
    table = Table.read(loaded, columns=columns, labelled=True, grid=False, **options)
    return table.fill(hold_out_tail(len(table.values), held_out), missing)


def row_scores(trained: TrainedNetwork, rows: Table) -> Array:
    """A score `[T]` for every row, in the order of the user's table.

    Args:
        trained: The network.
        rows: At least L rows in raw units.

    Returns:
        The mean over the windows that cover each row.

    Raises:
        ArgumentError: The number of channels is another than that of the training data.
        DataError: There are fewer rows than a window has.
        SACMError: A score is not finite.
    """
    length, scaler = trained.shape.input_len, trained.scaler
    trained.check_channels(rows.values.shape[1], rows.name)
    if len(rows.values) < length:
        raise DataError(
            f"{rows.name} has {len(rows.values)} rows, fewer than one window of {length}."
        )
    stride = min(trained.settings.stride, length)
    starts = covering_starts(range(len(rows.values)), length, stride=stride)
    windows = TelemetryWindows(Series(rows.values, scaler), starts, length=length, scaler=scaler)
    scores = np.empty(len(rows.values))
    scores[rows.order] = step_scores(
        trained.network, windows, trained.settings, trained.strategy, order=rows.order
    )
    return scores


def threshold_of(trained: TrainedNetwork) -> float:
    """The threshold of a detector, which has one."""
    if trained.threshold is None:
        raise ArgumentError("this network has no threshold: ask it for scores instead.")
    return trained.threshold


def _as(answer: Array, data: Any) -> Any:
    """An array as the kind of object that `data` is."""
    return like(torch.from_numpy(answer), data)
