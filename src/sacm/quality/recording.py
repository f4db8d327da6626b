"""Data of any kind as rows to judge, with the way back to the form in which they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, from_numpy

from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData
from sacm.errors import ArgumentError, DataError
from sacm.quality.predictor import Array, Rows, list_names

if TYPE_CHECKING:
    from sacm.data.read import Table

TEST_KEPT = (
    "Test rows stay as they are in `repaired`: their anomalies are to be found, not repaired."
)
STEP_ROOM = 0.1  # by which the time step of new rows may differ; months differ in length


@dataclass(frozen=True, eq=False)
class Recording:
    """Rows of one or several series.

    Attributes:
        name: A short name.
        values: `[T, C]` float32 or float64, NaN where missing.
        columns: Names of the C channels.
        segments: Ranges of rows that cover all rows; nothing is predicted across their borders.
        labels: The series of each segment.
        train: The training rows of each segment.
        restore: Takes repaired values `[T, C]` and which of them were changed, and gives the data
            back in the form in which they came; what was not changed stays bit-identical.
        times: `[T]` datetime64, or None.
        borders: Rows at which a split begins or ends.
        notes: What was found or guessed while reading.
        understood: How a user's table was read, in short lines.
    """

    name: str
    values: Array
    columns: tuple[str, ...]
    segments: tuple[range, ...]
    labels: tuple[str, ...]
    train: tuple[range, ...]
    restore: Callable[[Array, Array], Any]
    times: Array | None = None
    borders: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()

    @property
    def rows(self) -> Rows:
        """The rows by segment; a series is counted through all its segments."""
        counted: Counter[str] = Counter()
        starts = []
        for segment, label in zip(self.segments, self.labels, strict=True):
            starts.append(counted[label])
            counted[label] += len(segment)
        return Rows(self.segments, starts)

    @property
    def step(self) -> float | None:
        """Usual seconds between rows, None without times."""
        if self.times is None:
            return None
        steps = [np.diff(self.times[s.start : s.stop]) for s in self.segments]
        seconds = np.concatenate(steps) / np.timedelta64(1, "s")
        return float(np.median(seconds[seconds > 0])) if (seconds > 0).any() else None

    def parts(self) -> Rows:
        """The rows with segments cut at the borders of splits and of the training rows."""
        parts = []
        for segment, train in zip(self.segments, self.train, strict=True):
            cuts = {*self.borders, train.start, train.stop} if len(train) else {*self.borders}
            ends = sorted({segment.start, segment.stop, *(c for c in cuts if c in segment)})
            parts += [range(first, stop) for first, stop in pairwise(ends)]
        numbers = self.rows.number
        return Rows(parts, [int(numbers[part.start]) for part in parts])

    def training_part(self) -> tuple[Array, Rows]:
        """Positions `[T']` of the training rows, and their segments."""
        kept = [rows for rows in self.train if len(rows)]
        numbers = self.rows.number
        starts = [int(numbers[rows.start]) for rows in kept]
        at = np.concatenate([np.arange(rows.start, rows.stop) for rows in kept])
        return at, Rows(_end_to_end([len(rows) for rows in kept]), starts)

    def until(self, stop: int) -> Recording:
        """The rows before `stop`, all of them training rows."""
        segments = tuple(range(s.start, min(s.stop, stop)) for s in self.segments if s.start < stop)
        return replace(
            self,
            values=self.values[:stop],
            times=None if self.times is None else self.times[:stop],
            segments=segments,
            labels=self.labels[: len(segments)],
            train=segments,
        )

    def ordered(self, columns: Sequence[str], step: float | None) -> tuple[Recording, Array]:
        """The same rows with channels in the order of training, and where they came from.

        Raises:
            ArgumentError: The channels or the time step are not those of the training rows.
        """
        count = len(columns)
        if self.values.shape[1] != count:
            raise ArgumentError(
                f"{self.name} has {self.values.shape[1]} channels, the training rows had {count}."
            )
        unnamed = any(all(n.isdigit() for n in names) for names in (self.columns, columns))
        if not unnamed and set(self.columns) != set(columns):
            raise ArgumentError(
                f"{self.name} has the columns {list_names(self.columns)}; the training rows had "
                f"{list_names(columns)}."
            )
        here = self.step
        if here and step and abs(here / step - 1) > STEP_ROOM:
            raise ArgumentError(
                f"{self.name} has a row every {here:g} s, the training rows had one every "
                f"{step:g} s: bring the rows to this step, or fit a guard for them."
            )
        order = np.array([at if unnamed else self.columns.index(c) for at, c in enumerate(columns)])
        return replace(self, values=self.values[:, order], columns=tuple(columns)), order


def read_recording(
    data: Any, train: Any = None, *, reading: Mapping[str, Any] | None = None
) -> Recording:
    """Read data of any kind.

    Args:
        data: A frame, array `[T]` or `[T, C]`, tensor, file, long table `unique_id, ds, y`, or one
            of the three data sets.
        train: The training rows of each series: a share in (0, 1], a number of rows, or a range.
            None: the data set's own training part, or all rows.
        reading: Options for reading a frame or file by name, such as `time` or `ignore`.

    Raises:
        DataError: The data cannot be read.
        ArgumentError: `train` names no rows.
    """
    if isinstance(data, Recording):
        recording = data
    elif isinstance(data, ForecastingData):
        recording = _from_forecasting(data)
    elif isinstance(data, AnomalyData):
        recording = _from_anomaly(data)
    elif isinstance(data, ClassificationData):
        recording = _from_classification(data)
    else:
        recording = _from_source(data, dict(reading or {}))
    if train is None:
        return recording
    chosen = []
    for segment in recording.segments:
        first, stop = _ends(train, len(segment))
        chosen.append(range(segment.start + first, segment.start + max(first, stop)))
    if not any(map(len, chosen)):
        raise ArgumentError(f"train = {train!r} holds no row of {recording.name}.")
    return replace(recording, train=tuple(chosen))


def _ends(train: Any, length: int) -> tuple[int, int]:
    """First training row of a series and the row after the last."""
    if isinstance(train, range | slice) and train.step in (None, 1):
        ends = train.start, train.stop
        if all(end is None or isinstance(end, int | np.integer) for end in ends):
            return slice(*ends).indices(length)[:2]
    elif isinstance(train, int | np.integer) and not isinstance(train, bool):
        if train > 0:
            return 0, min(int(train), length)
    elif isinstance(train, float | np.floating) and 0 < train <= 1:
        return 0, max(1, round(float(train) * length))
    raise ArgumentError(
        f"train = {train!r}: pass a share in (0, 1], a number of rows, or a range of rows."
    )


def _end_to_end(lengths: Sequence[int]) -> tuple[range, ...]:
    """Ranges of these lengths that follow each other."""
    return tuple(range(int(a), int(b)) for a, b in pairwise(np.cumsum([0, *lengths])))


# Frames, arrays and files


def _from_source(data: Any, options: dict[str, Any]) -> Recording:
    from sacm.data.read import read_table

    table = read_table(data, options, grid=False)
    segments = tuple(range(start, stop) for _, start, stop in table.series)
    resampled = bool(options.get("resample"))
    return Recording(
        name=table.name,
        values=table.values,
        columns=table.names,
        segments=segments,
        labels=tuple(name for name, *_ in table.series),
        train=segments,
        times=table.times,
        restore=lambda new, changed: (
            _give_resampled(table, new) if resampled else _give_back(data, table, new, changed)
        ),
        notes=table.notes,
        understood=table.understood,
    )


def _give_resampled(table: Table, values: Array) -> Any:
    """Rows that were averaged into even steps, as a frame with their times and series."""
    import pandas as pd

    form = table.form.as_table()
    frame = pd.DataFrame(values, columns=list(table.names))
    assert table.times is not None
    frame.insert(0, form.time or "time", form.write_times(table.times))
    if form.long:
        lengths = [stop - start for _, start, stop in table.series]
        frame.insert(0, form.id, np.repeat([name for name, *_ in table.series], lengths))
    return frame


def _give_back(data: Any, table: Table, new: Array, changed: Array) -> Any:
    """A copy of what the user passed with changed values in it; the others stay as they are."""
    content: Any = table.source.content
    values = np.zeros((len(content), new.shape[1]), new.dtype)
    marks = np.zeros(values.shape, bool)
    values[table.order], marks[table.order] = new, changed
    if isinstance(content, np.ndarray):
        return _give_array(data, content, values, marks)
    if not set(table.names) <= set(content.columns):
        raise DataError(f"{table.source.where} holds a series in every row: turn it into columns.")
    columns = {}
    for channel in np.flatnonzero(marks.any(0)):
        at = list(content.columns).index(table.names[channel])
        columns[at] = _give_column(content.iloc[:, at], values[:, channel], marks[:, channel])
    if table.source.kind == "polars":
        import polars

        new_columns = [polars.Series(data.columns[at], c.to_numpy()) for at, c in columns.items()]
        return data.with_columns(new_columns)
    if table.source.kind == "series":
        return next(iter(columns.values())).rename(data.name) if columns else data.copy()
    result = data.copy() if type(data) is type(content) else content.copy()
    for at, column in columns.items():
        result.isetitem(at, column)
    return result


def _give_array(data: Any, content: Array, values: Array, changed: Array) -> Any:
    """An array or tensor like `data`; integers become float64 if a value was changed."""
    marks, result = changed.reshape(content.shape), np.array(content)
    if marks.any():
        result = result if result.dtype.kind == "f" else result.astype(np.float64)
        result[marks] = values.reshape(content.shape)[marks]
    if isinstance(data, Tensor):
        tensor = from_numpy(result)
        return tensor.to(data.device, data.dtype if data.is_floating_point() else tensor.dtype)
    return np.ma.masked_invalid(result) if isinstance(data, np.ma.MaskedArray) else result


def _give_column(column: Any, values: Array, changed: Array) -> Any:
    """One column of a frame with the changed values in it."""
    import pandas as pd

    numbers = pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
    result = pd.Series(np.where(changed, values, numbers), index=column.index, name=column.name)
    return result.astype(column.dtype) if pd.api.types.is_float_dtype(column) else result


# The three data sets


def _replace(old: Array, new: Array, changed: Array) -> Array:
    """Changed values in the precision of the others, which stay as they are."""
    return np.where(changed, new.astype(old.dtype), old)


def _from_forecasting(data: ForecastingData) -> Recording:
    """Rows of a forecasting data set; what was not measured is missing."""
    values = data.values
    if data.observed is not None:
        values = np.where(np.asarray(data.observed) > 0, values, np.float32(np.nan))
    segments = [segment for segment in data.segments if segment.stop > segment.start]
    training = data.splits.train
    ends = [(max(s.start, training.start), min(s.stop, training.stop)) for s in segments]
    return Recording(
        name=data.name,
        values=values,
        columns=data.columns,
        segments=tuple(range(segment.start, segment.stop) for segment in segments),
        labels=tuple(segment.name for segment in segments),
        train=tuple(range(first, max(first, stop)) for first, stop in ends),
        times=data.timestamps,
        restore=lambda new, changed: replace(data, values=_replace(data.values, new, changed)),
        borders=tuple(end for rows in data.splits for end in (rows.start, rows.stop)),
        notes=data.notes,
    )


def _from_anomaly(data: AnomalyData) -> Recording:
    """Training rows, then test rows; a machine's test rows follow its training rows."""
    count = len(data.train)
    train = [(s.name, s.train, s.train) for s in data.segments]
    tests = [(s.name, range(s.test.start + count, s.test.stop + count)) for s in data.segments]
    parts = [*train, *((name, rows, rows[:0]) for name, rows in tests)]
    labels, segments, trained = zip(*(part for part in parts if len(part[1])), strict=True)

    def restore(new: Array, changed: Array) -> AnomalyData:
        return replace(data, train=_replace(data.train, new[:count], changed[:count]))

    return Recording(
        name=data.name,
        values=np.concatenate([data.train, data.test]),
        columns=data.columns or tuple(map(str, range(data.channels))),
        segments=segments,
        labels=labels,
        train=trained,
        restore=restore,
        notes=(*data.notes, TEST_KEPT),
    )


def _from_classification(data: ClassificationData) -> Recording:
    """Cases end to end, each a series of its own."""
    arrays, lengths = (data.X_train, data.X_test), (data.lengths_train, data.lengths_test)
    cases = [
        (part, case, int(length))
        for part in (0, 1)
        for case, length in enumerate(lengths[part])
        if length
    ]
    segments = _end_to_end([length for *_, length in cases])

    def restore(new: Array, changed: Array) -> ClassificationData:
        results = [array.copy() for array in arrays]
        for (part, case, length), rows in zip(cases, segments, strict=True):
            at = slice(rows.start, rows.stop)
            old = results[part][case, :, :length]
            results[part][case, :, :length] = _replace(old, new[at].T, changed[at].T)
        return replace(data, X_train=results[0], X_test=results[1])

    trained = sum(part == 0 for part, *_ in cases)
    return Recording(
        name=data.name,
        values=np.concatenate([arrays[part][case, :, :length].T for part, case, length in cases]),
        columns=tuple(map(str, range(data.channels))),
        segments=segments,
        labels=tuple(f"{('training', 'test')[part]} case {case + 1}" for part, case, _ in cases),
        train=(*segments[:trained], *(rows[:0] for rows in segments[trained:])),
        restore=restore,
        notes=data.notes,
    )
