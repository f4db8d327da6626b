"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sacm.data.datasets import AnomalyData
from sacm.data.own.series import index_note, load_source, take_times
from sacm.data.splits import hold_out_tail
from sacm.data.tables.columns import coarse_note, from_array, matrix, numbers
from sacm.data.tables.gaps import Policy as Missing
from sacm.data.tables.gaps import fill
from sacm.data.tables.timeline import Timeline, sort_rows
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
    for each test row, in the order of the table) come from `labels`, from `label_column`, or from a
    column called label, anomaly or the like; without any, all are 0 and `notes` says so.
    """
    label = name or (Path(train).stem if isinstance(train, str | Path) else "data")
    if not 0 < train_share < 1:
        raise ArgumentError(f"train_share must be between 0 and 1, got {train_share}.")
    first = read_part(train, label, label_column)
    if test is None:
        trained, tested, notes = split_rows(first, train_share, missing)
    else:
        trained = first.filled(hold_out_tail(len(first.values)), missing)
        second = read_part(test, label, label_column)
        tested = second.filled([range(len(second.values))], missing)
        notes = (*trained.notes, *tested.notes)
    if not len(trained.values) or not len(tested.values):
        raise DataError(f"{label} has too few rows to train and test on.")
    marks = tested.marks if labels is None else np.asarray(labels).reshape(-1)
    if marks is None:
        marks = np.zeros(len(tested.values))
        notes = (*notes, "There are no labels: detection can be run but not measured.")
    check_marks(marks, len(tested.values), label)
    if labels is not None:  # they stand in the order of the table, the rows in that of time
        marks = marks[np.argsort(np.argsort(tested.rows))]
    return AnomalyData(
        name=label,
        train=trained.values,
        test=tested.values,
        labels=marks.astype(np.uint8),
        columns=first.columns,
        notes=notes,
    )


class Part(NamedTuple):
    """One table in order of time: values `[T, C]`, labels if it has any, where each row stood."""

    where: str
    values: np.ndarray
    marks: np.ndarray | None
    columns: tuple[str, ...]
    rows: np.ndarray
    notes: tuple[str, ...]

    def filled(self, pieces: Sequence[range], missing: Missing) -> Part:
        """Without gaps; none is filled from a later piece."""
        found = fill(self.values, pieces, policy=missing, columns=self.columns, where=self.where)
        notes = (*self.notes, found.note) if found.note else self.notes
        return self._replace(values=found.values, notes=notes)

    def cut(self, start: int, stop: int | None = None) -> Part:
        """Some of the rows."""
        rows = slice(start, stop)
        marks = None if self.marks is None else self.marks[rows]
        return self._replace(values=self.values[rows], marks=marks, rows=self.rows[rows])


def split_rows(
    table: Part, train_share: float, missing: Missing
) -> tuple[Part, Part, tuple[str, ...]]:
    """Training and test rows of one table, and the notes on both."""
    border = int(len(table.values) * train_share)
    pieces = [*hold_out_tail(border), range(border, len(table.values))]
    whole = table.filled(pieces, missing)
    return whole.cut(0, border), whole.cut(border), whole.notes


def read_part(source: Any, where: str, label_column: str | None) -> Part:
    """One file, frame or array."""
    where = str(source) if isinstance(source, str | Path) else where
    table = load_source(source, where)
    if isinstance(table, np.ndarray):
        values = from_array(table, where)
        names = tuple(str(position) for position in range(values.shape[1]))
        line = Timeline(np.arange(len(values)), None, None, ()).noting(coarse_note(table))
        return Part(where, values, None, names, line.rows, line.notes)
    unused = index_note(table)
    times, table = take_times(table, None, where)
    # Rows that a grid lacks would have no label, so none are inserted.
    line = sort_rows(times, len(table), where=where).noting(unused)
    chosen = label_column or next((c for c in table.columns if c.lower() in LABEL_NAMES), None)
    if chosen is not None and chosen not in table.columns:
        raise DataError(f"{where} has no column {chosen!r}.")
    marks = None if chosen is None else numbers(table[chosen], where)[line.rows]
    table = table if chosen is None else table.drop(columns=chosen)
    names = tuple(str(column) for column in table.columns)
    values = matrix(table, where)[line.rows]
    return Part(where, values, marks, names, line.rows, line.noting(coarse_note(table)).notes)


def check_marks(marks: np.ndarray, rows: int, where: str) -> None:
    """Refuse labels other than 0 and 1, and any number of them but one a row."""
    if len(marks) != rows:
        raise DataError(f"{where}: {len(marks)} labels for {rows} test rows.")
    wrong = np.flatnonzero(~np.isin(marks, (0, 1)))
    if len(wrong):
        raise DataError(
            f"{where}: label {marks[wrong[0]]} of test row {wrong[0] + 1} is not 0 or 1."
        )
