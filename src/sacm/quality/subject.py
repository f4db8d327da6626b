"""Data of any kind as one table of rows to inspect, with the way back to how they came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData
from sacm.data.tables.panel import Panel, is_long
from sacm.data.tables.source import Source, load_source
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError

Restore = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Subject:
    """Rows to inspect.

    Attributes:
        name: A short name.
        values: `[T, C]` float32, NaN where missing.
        columns: Names of the C channels.
        pieces: Ranges of rows that are series of their own and cover all rows.
        labels: The name of each piece.
        starts: The number of each piece's first row, counted from the first row of its series.
        train: For each piece the rows that belong to the training part.
        times: `[T]` datetime64, or None.
        restore: Gives values `[T, C]` back in the form in which the data came.
        notes: What was found or guessed while reading.
    """

    name: str
    values: np.ndarray
    columns: tuple[str, ...]
    pieces: tuple[range, ...]
    labels: tuple[str, ...]
    starts: tuple[int, ...]
    train: tuple[range, ...]
    times: np.ndarray | None
    restore: Restore
    notes: tuple[str, ...] = field(default=())

    def training_rows(self) -> tuple[np.ndarray, list[range], list[int]]:
        """Values of the training rows `[T', C]`, their pieces, and the number of each first row."""
        kept = [(rows, start) for rows, start in zip(self.train, self.starts, strict=True)]
        kept = [(rows, start) for rows, start in kept if len(rows)]
        borders = np.cumsum([0, *(len(rows) for rows, _ in kept)])
        pieces = [range(int(a), int(b)) for a, b in pairwise(borders)]
        values = np.concatenate([self.values[rows.start : rows.stop] for rows, _ in kept])
        return values, pieces, [start for _, start in kept]


def read_subject(data: Any, train: Any = None, *, time: str | None = None) -> Subject:
    """Read data of any kind.

    Args:
        data: A frame, array `[T]` or `[T, C]`, tensor, file, long table `unique_id, ds, y`, or one
            of the three data sets.
        train: The training rows: a share in (0, 1], a number of rows, or a range; of each series.
            None: the data set's own training part, or all rows.
        time: The time column of a frame or file.

    Raises:
        DataError: The data cannot be read.
        ArgumentError: `train` names no rows.
    """
    subject = _read(data, time)
    return subject if train is None else replace(subject, train=_choose_rows(subject, train))


def _read(data: Any, time: str | None) -> Subject:
    if isinstance(data, ForecastingData):
        return _from_forecasting(data)
    if isinstance(data, AnomalyData):
        return _from_anomaly(data)
    if isinstance(data, ClassificationData):
        return _from_classification(data)
    source = load_source(data)
    return _from_panel(source) if is_long(source) else _from_table(source, time)


def _choose_rows(subject: Subject, train: Any) -> tuple[range, ...]:
    chosen = []
    for piece in subject.pieces:
        if isinstance(train, range | slice):
            first, last, _ = slice(train.start, train.stop).indices(len(piece))
        elif isinstance(train, float) and 0 < train <= 1:
            first, last = 0, max(1, round(train * len(piece)))
        elif isinstance(train, int) and not isinstance(train, bool) and train > 0:
            first, last = 0, min(train, len(piece))
        else:
            raise ArgumentError(
                f"train = {train!r}: pass a share in (0, 1], a number of rows, or a range of rows."
            )
        chosen.append(range(piece.start + first, piece.start + max(first, last)))
    if not any(map(len, chosen)):
        raise ArgumentError(f"train = {train!r} holds no row of {subject.name}.")
    return tuple(chosen)


def _from_table(source: Source, time: str | None) -> Subject:
    table = Table.read(source, time=time, grid=False, irregular="keep")
    rows = range(len(table.values))

    def restore(values: np.ndarray) -> Any:
        ordered = np.empty_like(values)
        ordered[table.order] = values
        if isinstance(source.content, np.ndarray):
            shaped = ordered.astype(np.result_type(source.content.dtype, np.float32))
            result = shaped.reshape(source.content.shape)
            return _as_tensor(result) if source.kind == "tensor" else result
        frame = source.content.copy()
        for place, name in enumerate(table.names):
            frame[name] = ordered[:, place].astype(np.float64)
        return _as_came(frame, source.kind)

    return Subject(
        name=table.name,
        values=table.values,
        columns=table.names,
        pieces=(rows,),
        labels=(table.name,),
        starts=(0,),
        train=(rows,),
        times=table.times,
        restore=restore,
        notes=table.notes,
    )


def _from_panel(source: Source) -> Subject:
    panel = Panel.read(source, irregular="keep")
    # Inserted rows have no place in the user's table; each series keeps those that are there.
    series = [(table, np.flatnonzero(table.order >= 0)) for table in panel.series]
    borders = np.cumsum([0, *(len(rows) for _, rows in series)])
    pieces = tuple(range(int(a), int(b)) for a, b in pairwise(borders))
    times = [table.times[rows] for table, rows in series if table.times is not None]
    frame: Any = source.content
    order = frame["unique_id"].reset_index(drop=True)

    def restore(values: np.ndarray) -> Any:
        result = frame.copy()
        repaired = result["y"].to_numpy(dtype=np.float64, na_value=np.nan).copy()
        for (table, rows), piece in zip(series, pieces, strict=True):
            own = np.flatnonzero(order.astype(str).to_numpy() == table.name)
            repaired[own[table.order[rows]]] = values[piece.start : piece.stop, 0]
        result["y"] = repaired
        return _as_came(result, source.kind)

    return Subject(
        name=panel.name,
        values=np.concatenate([table.values[rows] for table, rows in series]),
        columns=("y",),
        pieces=pieces,
        labels=tuple(table.name for table, _ in series),
        starts=(0,) * len(pieces),
        train=pieces,
        times=np.concatenate(times) if len(times) == len(series) else None,
        restore=restore,
        notes=panel.notes,
    )


def _from_forecasting(data: ForecastingData) -> Subject:
    values = data.values
    if data.observed is not None:  # filled gaps are gaps again
        values = np.where(data.observed, values, np.float32(np.nan))
    pieces = tuple(range(segment.start, segment.stop) for segment in data.segments)
    seen: dict[str, int] = {}
    starts = []
    for segment in data.segments:
        starts.append(seen.get(segment.name, 0))
        seen[segment.name] = starts[-1] + segment.stop - segment.start
    last = data.splits.train.stop
    train = tuple(range(rows.start, max(rows.start, min(rows.stop, last))) for rows in pieces)
    return Subject(
        name=data.name,
        values=values,
        columns=data.columns,
        pieces=pieces,
        labels=tuple(segment.name for segment in data.segments),
        starts=tuple(starts),
        train=train,
        times=data.timestamps,
        restore=lambda new: replace(data, values=new.astype(np.float32)),
        notes=data.notes,
    )


def _from_anomaly(data: AnomalyData) -> Subject:
    count = len(data.train)
    train = [segment.train for segment in data.segments]
    test = [range(s.test.start + count, s.test.stop + count) for s in data.segments]
    return Subject(
        name=data.name,
        values=np.concatenate([data.train, data.test]),
        columns=data.columns or tuple(str(place) for place in range(data.channels)),
        pieces=(*train, *test),
        labels=tuple(segment.name for segment in data.segments) * 2,
        starts=(*(0 for _ in train), *(len(rows) for rows in train)),
        train=(*train, *(range(rows.start, rows.start) for rows in test)),
        times=None,
        restore=lambda new: replace(data, train=new[:count], test=new[count:]),
        notes=data.notes,
    )


def _from_classification(data: ClassificationData) -> Subject:
    """Cases end to end, each a series of its own."""
    parts = [(data.X_train, data.lengths_train), (data.X_test, data.lengths_test)]
    cases = [
        np.ascontiguousarray(case[:, :length].T)
        for X, lengths in parts
        for case, length in zip(X, lengths, strict=True)
    ]
    borders = np.cumsum([0, *map(len, cases)])
    pieces = tuple(range(int(a), int(b)) for a, b in pairwise(borders))
    trained = len(data.X_train)

    def restore(values: np.ndarray) -> ClassificationData:
        arrays = [X.copy() for X, _ in parts]
        for number, rows in enumerate(pieces):
            array, first = (arrays[0], 0) if number < trained else (arrays[1], trained)
            array[number - first, :, : len(rows)] = values[rows.start : rows.stop].T
        return replace(data, X_train=arrays[0], X_test=arrays[1])

    return Subject(
        name=data.name,
        values=np.concatenate(cases),
        columns=tuple(str(place) for place in range(data.channels)),
        pieces=pieces,
        labels=tuple(f"case {number + 1}" for number in range(len(pieces))),
        starts=(0,) * len(pieces),
        train=tuple(
            rows if number < trained else range(rows.start, rows.start)
            for number, rows in enumerate(pieces)
        ),
        times=None,
        restore=restore,
        notes=data.notes,
    )


def _as_tensor(values: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(values)


def _as_came(frame: Any, kind: str) -> Any:
    """A pandas frame as the library or the shape it came from."""
    if kind == "polars":
        import polars

        return polars.from_pandas(frame)
    return frame.iloc[:, 0] if kind == "series" else frame


def check_columns(subject: Subject, columns: Sequence[str]) -> None:
    """Refuse rows whose channels are not those of the training rows."""
    if subject.values.shape[1] != len(columns):
        raise ArgumentError(
            f"{subject.name} has {subject.values.shape[1]} channels, the training rows had "
            f"{len(columns)}."
        )
    named = not all(column.isdigit() for column in (*subject.columns, *columns))
    if named and tuple(subject.columns) != tuple(columns):
        raise ArgumentError(
            f"{subject.name} has the columns {', '.join(subject.columns)}; the training rows had "
            f"{', '.join(columns)}."
        )
