"""A user's own telemetry to search for anomalies, as `AnomalyData`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData
from sacm.data.read import read_table
from sacm.errors import ArgumentError, DataError
from sacm.settings import ReadOptions

DEFAULT_SPLIT = (0.5, 0.5)  # shares of the rows that train and that test
NO_USE = ("target", "id", "frequency", "scaling", "past", "future", "resample")


def anomaly_data(source: Any, *, name: str | None = None, **options: Any) -> AnomalyData:
    """Read telemetry: the first rows train, the later ones test.

    Args:
        source: What `sacm.data.read_table` reads. For arrays of training and test rows there is
            `sacm.data.AnomalyData` itself.
        name: A short name. Default: that of the file, or "data".
        options: How to read it; see `sacm.settings.ReadOptions`. `split` holds the shares of
            training and test rows, `label` the column of labels: without any, all are 0.

    Example:
        >>> data = anomaly_data(np.random.default_rng(0).normal(size=(100, 3)))
        >>> data.train.shape, data.test.shape
        ((50, 3), (50, 3))
    """
    for option in NO_USE:
        if options.get(option):
            raise ArgumentError(f"{option} = {options[option]!r}: anomaly has no use for it.")
    chosen = ReadOptions.of(options)
    split = chosen.split or DEFAULT_SPLIT
    if len(split) != 2 or abs(sum(split) - 1) > 1e-6 or not 0 < split[0] < 1:
        raise ArgumentError(
            "split must be two shares (training, test) that add up to 1, such as 0.5,0.5; got "
            f"{tuple(split)}."
        )
    # Rows that a grid lacks would have no label.
    table = read_table(source, chosen, name=name, grid=False)
    values = np.ascontiguousarray(table.values, dtype=np.float32)
    border, notes, labels = int(len(values) * split[0]), table.notes, table.labels
    if not 0 < border < len(values):
        raise DataError(f"{table.name} has too few rows to train and test on.")
    if labels is None:
        labels = np.zeros(len(values))
        notes = (*notes, "There are no labels: detection can be run but not measured.")
    wrong = np.flatnonzero(~np.isin(labels[border:], (0, 1)))
    if len(wrong):
        where = f"{labels[border + wrong[0]]} of test row {wrong[0] + 1}"
        raise DataError(f"{table.name}: label {where} is not 0 or 1.")
    return AnomalyData(
        name=table.name,
        train=values[:border],
        test=values[border:],
        labels=labels[border:].astype(np.uint8),
        columns=table.names,
        notes=notes,
        understood=table.understood,
    )
