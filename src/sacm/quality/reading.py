"""Data of any kind as a subject to inspect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData
from sacm.errors import ArgumentError
from sacm.quality.datasets import from_anomaly, from_classification, from_forecasting
from sacm.quality.subject import Subject
from sacm.quality.tables import from_source


def read_subject(
    data: Any,
    train: Any = None,
    *,
    time: str | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Subject:
    """Read data of any kind.

    Args:
        data: A frame, array `[T]` or `[T, C]`, tensor, file, long table `unique_id, ds, y`, or one
            of the three data sets.
        train: The training rows: a share in (0, 1], a number of rows, or a range; of each series.
            None: the data set's own training part, or all rows.
        time: The time column of a frame or file.
        reading: Further options for reading a frame or file by name, such as `ignore` or `id`.

    Raises:
        DataError: The data cannot be read.
        ArgumentError: `train` names no rows.
    """
    if isinstance(data, ForecastingData):
        subject = from_forecasting(data)
    elif isinstance(data, AnomalyData):
        subject = from_anomaly(data)
    elif isinstance(data, ClassificationData):
        subject = from_classification(data)
    else:
        options = {} if time is None else {"time": time}
        subject = from_source(data, {**options, **(reading or {})})
    return subject if train is None else replace(subject, train=_choose_rows(subject, train))


def _choose_rows(subject: Subject, train: Any) -> tuple[range, ...]:
    """The training rows of each piece."""
    chosen = []
    for piece in subject.pieces:
        first, last = _ends(train, len(piece))
        chosen.append(range(piece.start + first, piece.start + max(first, last)))
    if not any(map(len, chosen)):
        raise ArgumentError(f"train = {train!r} holds no row of {subject.name}.")
    return tuple(chosen)


def _ends(train: Any, length: int) -> tuple[int, int]:
    """First training row of a series and the row after the last."""
    if isinstance(train, range | slice) and train.step in (None, 1):
        ends = train.start, train.stop
        if all(end is None or isinstance(end, int | np.integer) for end in ends):
            first, last, _ = slice(*ends).indices(length)
            return first, last
    elif isinstance(train, int | np.integer) and not isinstance(train, bool):
        if train > 0:
            return 0, min(int(train), length)
    elif isinstance(train, float | np.floating) and 0 < train <= 1:
        return 0, max(1, round(float(train) * length))
    raise ArgumentError(
        f"train = {train!r}: pass a share in (0, 1], a number of rows, or a range of rows."
    )
