"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData
from sacm.data.read import read_table
from sacm.errors import ArgumentError, DataError
from sacm.settings import ReadOptions

DEFAULT_SHARE = 0.5  # of the rows that train, without rows to test
NO_USE = ("target", "id", "frequency", "scaling", "past", "future", "resample")


def anomaly_data(
    train: Any,
    test: Any = None,
    options: ReadOptions | Mapping[str, Any] | None = None,
    *,
    labels: Any = None,
    name: str | None = None,
    **named: Any,
) -> AnomalyData:
    """Read telemetry: files, frames or arrays as for forecasting.

    Args:
        train: Rows to train on, `[T, C]`; also those to test if there is no `test`.
        test: Rows to test, with the columns of `train`. Default: the later rows of `train`.
        options: How to read them; see `sacm.settings.ReadOptions`. `split` holds the shares of
            training and test rows, `label` the column of labels: without any, all are 0.
        labels: 0 or 1 for each test row, in the order of the table.
        name: A short name. Default: that of the file, or "data".
        named: Options for reading by name, such as `time="day"`.

    Example:
        >>> data = anomaly_data(np.random.default_rng(0).normal(size=(100, 3)))
        >>> data.train.shape, data.test.shape
        ((50, 3), (50, 3))
    """
    given = options.reading() if isinstance(options, ReadOptions) else dict(options or {})
    given |= {key: value for key, value in named.items() if value is not None}
    for option in NO_USE:
        if given.get(option):
            raise ArgumentError(f"{option} = {given[option]!r}: anomaly has no use for it.")
    chosen = ReadOptions.of(given)
    split = chosen.split or (DEFAULT_SHARE, 1 - DEFAULT_SHARE)
    if len(split) != 2 or abs(sum(split) - 1) > 1e-6 or not 0 < split[0] < 1:
        raise ArgumentError(
            "split must be two shares (training, test) that add up to 1, such as 0.5,0.5; got "
            f"{tuple(split)}."
        )
    title = name or (Path(train).stem if isinstance(train, str | Path) else "data")
    # Rows that a grid lacks would have no label.
    first = read_table(train, chosen, name=title, grid=False)
    second, notes, border = first, first.notes, int(len(first.values) * split[0])
    if test is not None:
        update = {"columns": first.columns} if first.columns is not None else {}
        second = read_table(test, chosen.model_copy(update=update), name=title, grid=False)
        notes, border = notes + second.notes, 0
    trained = first.values[:border] if test is None else first.values
    tested, order, marks = second.values[border:], second.order[border:], second.labels
    if not len(trained) or not len(tested):
        raise DataError(f"{title} has too few rows to train and test on.")
    if labels is not None:  # they stand in the order of the table, the rows in that of time
        marks = np.asarray(labels).reshape(-1)
    elif marks is not None:
        marks = marks[border:]
    else:
        marks = np.zeros(len(tested))
        notes = (*notes, "There are no labels: detection can be run but not measured.")
    if len(marks) != len(tested):
        raise DataError(f"{title}: {len(marks)} labels for {len(tested)} test rows.")
    wrong = np.flatnonzero(~np.isin(marks, (0, 1)))
    if len(wrong):
        where = f"{marks[wrong[0]]} of test row {wrong[0] + 1}"
        raise DataError(f"{title}: label {where} is not 0 or 1.")
    if labels is not None:
        marks = marks[np.argsort(np.argsort(order))]
    return AnomalyData(
        name=title,
        train=np.ascontiguousarray(trained, dtype=np.float32),
        test=np.ascontiguousarray(tested, dtype=np.float32),
        labels=marks.astype(np.uint8),
        columns=first.names,
        notes=notes,
        understood=first.understood,
    )
