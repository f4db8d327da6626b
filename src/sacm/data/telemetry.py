"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sacm.data.containers import AnomalyData
from sacm.data.missing import Policy as Missing
from sacm.data.missing import fill
from sacm.data.numeric import from_array, matrix, numbers
from sacm.data.regular import timeline
from sacm.data.series import load_source, placed, take_times
from sacm.errors import ArgumentError, DataError

LABEL_NAMES = ("label", "labels", "anomaly", "is_anomaly", "attack")


def anomaly_data(
    train: Any,
    test: Any = None,
    *,
    labels: Any = None,
    label_column: str | None = None,
    train_share: float = 0.5,
    missing: Missing = "interpolate",
    name: str | None = None,
) -> AnomalyData:
    """Read telemetry: files, frames or arrays as for forecasting.

    Without `test`, the first `train_share` of the rows trains and the rest is tested. Labels (0/1
    for each test row) come from `labels`, from `label_column`, or from a column called label,
    anomaly or the like; without any, all are 0 and `notes` says so.
    """
    label = name or (Path(train).stem if isinstance(train, str | Path) else "data")
    if not 0 < train_share < 1:
        raise ArgumentError(f"train_share must be between 0 and 1, got {train_share}.")
    first = read_part(train, label, label_column, missing)
    if test is None:
        border = int(len(first.values) * train_share)
        train_values, test_values = first.values[:border], first.values[border:]
        marks = None if first.marks is None else first.marks[border:]
        notes = first.notes
    else:
        second = read_part(test, label, label_column, missing)
        train_values, test_values, marks = first.values, second.values, second.marks
        notes = (*first.notes, *second.notes)
    if labels is not None:
        marks = np.asarray(labels).reshape(-1)
    if marks is None:
        marks = np.zeros(len(test_values))
        notes = (*notes, "There are no labels: detection can be run but not measured.")
    if not len(train_values) or not len(test_values):
        raise DataError(f"{label} has too few rows to train and test on.")
    check_marks(marks, label)
    return AnomalyData(
        name=label,
        train=train_values,
        test=test_values,
        labels=marks.astype(np.uint8),
        columns=first.columns,
        notes=notes,
    )


class Part(NamedTuple):
    """The values `[T, C]` of one table, and its label column if it has one."""

    values: np.ndarray
    marks: np.ndarray | None
    columns: tuple[str, ...]
    notes: tuple[str, ...]


def read_part(source: Any, where: str, label_column: str | None, missing: Missing) -> Part:
    """One file, frame or array."""
    where = str(source) if isinstance(source, str | Path) else where
    table = load_source(source, where)
    if isinstance(table, np.ndarray):
        values = from_array(table, where)
        names = tuple(str(position) for position in range(values.shape[1]))
        filled = fill(values, [range(len(values))], policy=missing, columns=names, where=where)
        return Part(filled.values, None, names, (filled.note,) if filled.note else ())
    times, table = take_times(table, None, where)
    line = timeline(times, len(table), where=where, irregular="keep")
    chosen = label_column or next((c for c in table.columns if c.lower() in LABEL_NAMES), None)
    if chosen is not None and chosen not in table.columns:
        raise DataError(f"{where} has no column {chosen!r}.")
    # Rows that the grid lacks would have no label, so here they stay away.
    rows = line.rows[line.rows >= 0]
    marks = None if chosen is None else numbers(table[chosen], where)[rows]
    table = table if chosen is None else table.drop(columns=chosen)
    names = tuple(str(column) for column in table.columns)
    values = placed(matrix(table, where), rows)
    filled = fill(values, [range(len(values))], policy=missing, columns=names, where=where)
    return Part(filled.values, marks, names, (filled.note,) if filled.note else ())


def check_marks(marks: np.ndarray, where: str) -> None:
    """Refuse labels other than 0 and 1."""
    wrong = np.flatnonzero(~np.isin(marks, (0, 1)))
    if len(wrong):
        raise DataError(
            f"{where}: label {marks[wrong[0]]} of test row {wrong[0] + 1} is not 0 or 1."
        )
