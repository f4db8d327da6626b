"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData
from sacm.data.gaps import Policy as Missing
from sacm.data.splits import hold_out_tail
from sacm.data.tables.date_text import DateOrder
from sacm.data.tables.number_text import Decimal
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
    timestamp: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    date_order: DateOrder | None = None,
    zone: str | None = None,
    decimal: Decimal | None = None,
) -> AnomalyData:
    """Read telemetry: files, frames or arrays as for forecasting.

    Args:
        train: Rows to train on, `[T, C]`; also those to test if there is no `test`.
        test: Rows to test, with the columns of `train`. Default: the later rows of `train`.
        labels: 0 or 1 for each test row, in the order of the table.
        label_column: The column of labels. Default: one called label, anomaly or the like; without
            any, all labels are 0 and `notes` says so.
        train_share: Without `test`, the share of the rows that trains.
        missing: "interpolate", "mask" or "error".
        name: A short name. Default: that of the file, or "data".
        timestamp: The time column, or several that make the time together. Default: found.
        columns: The channels. Default: all columns that are nothing else.
        ignore: Columns to leave out.
        date_order: How to read dates such as 01/02/03. Default: as needs the least sorting.
        zone: The time zone of times that name none.
        decimal: "," or ".", the sign before the fraction of numbers in text.

    Returns:
        The data; `notes` says what was guessed and repaired.

    Raises:
        DataError: The data cannot be read; the sentence says where and what to do.
        ArgumentError: `train_share` is not between 0 and 1.

    Example:
        >>> data = anomaly_data(np.random.default_rng(0).normal(size=(100, 3)))
        >>> data.train.shape, data.test.shape
        ((50, 3), (50, 3))
    """
    label = name or (Path(train).stem if isinstance(train, str | Path) else "data")
    if not 0 < train_share < 1:
        raise ArgumentError(f"train_share must be between 0 and 1, got {train_share}.")
    options: dict[str, Any] = {
        "name": label,
        "time": timestamp,
        "ignore": ignore,
        "label": label_column,
        "labelled": True,
        "grid": False,  # rows that a grid lacks would have no label
        "date_order": date_order,
        "zone": zone,
        "decimal": decimal,
    }
    first = Table.read(train, columns=columns, **options)
    if test is None:
        trained, tested, notes = split_rows(first, train_share, missing)
    else:
        trained = first.fill(hold_out_tail(len(first.values)), missing)
        second = Table.read(test, columns=first.columns, **options)
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
        understood=tuple(first.understood()),
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
