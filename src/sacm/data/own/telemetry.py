"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData
from sacm.data.splits import hold_out_tail
from sacm.data.tables.gaps import Policy as Missing
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError


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
    # Rows that a grid lacks would have no label, so none are inserted.
    first = Table.read(train, name=label, label=label_column, grid=False)
    if test is None:
        trained, tested, notes = split_rows(first, train_share, missing)
    else:
        trained = first.fill(hold_out_tail(len(first.values)), missing)
        second = Table.read(test, name=label, label=label_column, grid=False)
        tested = second.fill([range(len(second.values))], missing)
        notes = (*trained.notes, *tested.notes)
    if not len(trained.values) or not len(tested.values):
        raise DataError(f"{label} has too few rows to train and test on.")
    marks = tested.labels if labels is None else np.asarray(labels).reshape(-1)
    if marks is None:
        marks = np.zeros(len(tested.values))
        notes = (*notes, "There are no labels: detection can be run but not measured.")
    check_marks(marks, len(tested.values), label)
    if labels is not None:  # they stand in the order of the table, the rows in that of time
        marks = marks[np.argsort(np.argsort(tested.order))]
    return AnomalyData(
        name=label,
        train=trained.values,
        test=tested.values,
        labels=marks.astype(np.uint8),
        columns=first.names,
        notes=notes,
    )


def split_rows(
    table: Table, train_share: float, missing: Missing
) -> tuple[Table, Table, tuple[str, ...]]:
    """Training and test rows of one table, and the notes on both."""
    border = int(len(table.values) * train_share)
    pieces = [*hold_out_tail(border), range(border, len(table.values))]
    whole = table.fill(pieces, missing)
    return whole.cut(0, border), whole.cut(border), whole.notes


def check_marks(marks: np.ndarray, rows: int, where: str) -> None:
    """Refuse labels other than 0 and 1, and any number of them but one a row."""
    if len(marks) != rows:
        raise DataError(f"{where}: {len(marks)} labels for {rows} test rows.")
    wrong = np.flatnonzero(~np.isin(marks, (0, 1)))
    if len(wrong):
        raise DataError(
            f"{where}: label {marks[wrong[0]]} of test row {wrong[0] + 1} is not 0 or 1."
        )
