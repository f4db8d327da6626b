"""Data of any kind as rows to judge, with the way back to the form in which they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, from_numpy

from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData
from sacm.errors import ArgumentError, DataError, list_names
from sacm.quality.predictor import Array, Rows

if TYPE_CHECKING:
    from sacm.data.read import Table

STEP_ROOM = 0.1  # by which the time step of new rows may differ; months differ in length


@dataclass(frozen=True, eq=False)
class Recording:
    """Rows of one or several series."""

    name: str
    values: Array  # [T, C] float32 or float64, NaN where missing
    columns: tuple[str, ...]  # names of the C channels
    segments: tuple[range, ...]  # cover all rows; nothing is predicted across their borders
    labels: tuple[str, ...]  # the series of each segment
    train: tuple[range, ...]  # the training rows of each segment
    restore: Callable[[Array, Array], Any]  # new values and which of them to put into the data
    times: Array | None = None  # [T] datetime64
    borders: tuple[int, ...] = ()  # rows at which a split begins or ends
    notes: tuple[str, ...] = ()  # what was found or guessed while reading
    understood: tuple[str, ...] = ()  # how a user's table was read, in short lines

    @property
    def rows(self) -> Rows:
        """The rows by segment; a series is counted through all its segments."""
        counted, starts = Counter[str](), list[int]()
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
            cuts = (*self.borders, train.start, train.stop)
            ends = sorted({segment.start, segment.stop, *(c for c in cuts if c in segment)})
            parts += [range(*pair) for pair in pairwise(ends)]
        return Rows(parts, self.rows.number[[part.start for part in parts]])

    def training_part(self) -> tuple[Array, Rows]:
        """Positions `[T']` of the training rows, and their segments."""
        kept = [rows for rows in self.train if len(rows)]
        starts = self.rows.number[[rows.start for rows in kept]]
        ends = np.cumsum([0, *map(len, kept)]).tolist()
        return np.concatenate(kept), Rows([range(*pair) for pair in pairwise(ends)], starts)

    def order(self, columns: Sequence[str], step: float | None) -> Array:
        """Where each channel of the training rows is here, `[C]`; their time step must be equal."""
        unnamed = any(all(n.isdigit() for n in names) for names in (self.columns, columns))
        if len(self.columns) != len(columns) or not (unnamed or {*self.columns} == {*columns}):
            here, there = (f"{len(n)} channels ({list_names(n)})" for n in (self.columns, columns))
            raise ArgumentError(f"{self.name} has {here}, the training rows had {there}.")
        if self.step and step and abs(self.step / step - 1) > STEP_ROOM:
            steps = f"a row every {self.step:g} s, the training rows had one every {step:g} s"
            raise ArgumentError(f"{self.name} has {steps}: bring the rows to this step.")
        return np.array([at if unnamed else self.columns.index(c) for at, c in enumerate(columns)])


def read_recording(
    data: Any, train: Any = None, *, reading: Mapping[str, Any] | None = None
) -> Recording:
    """Read what `inspect` takes; `reading` has options for a frame or file, such as `time`."""
    if isinstance(data, Recording):
        recording = data
    elif isinstance(data, ForecastingData):
        recording = _from_forecasting(data)
    elif isinstance(data, AnomalyData):
        recording = _from_anomaly(data)
    elif isinstance(data, ClassificationData):
        raise ArgumentError(f"{data.name} holds cases: find_wrong_labels judges their labels.")
    else:
        recording = _from_source(data, reading or {})
    if train is None:
        return recording
    chosen = tuple(segment[_ends(train, len(segment))] for segment in recording.segments)
    if not any(map(len, chosen)):
        raise ArgumentError(f"train = {train!r} holds no row of {recording.name}.")
    return replace(recording, train=chosen)


def _ends(train: Any, length: int) -> slice:
    """The training rows of a series of `length` rows."""
    if isinstance(train, range) and train.step == 1:
        return slice(train.start, train.stop)
    if isinstance(train, int | np.integer) and not isinstance(train, bool) and train > 0:
        return slice(int(train))
    if isinstance(train, float | np.floating) and 0 < train <= 1:
        return slice(max(1, round(float(train) * length)))
    raise ArgumentError(f"train = {train!r}: pass a share in (0, 1], a number of rows or a range.")


def _from_source(data: Any, options: Mapping[str, Any]) -> Recording:
    """Rows of a frame, an array or a file."""
    from sacm.data.read import read_table

    table = read_table(data, options, grid=False)
    segments = tuple(range(start, stop) for _, start, stop in table.series)
    labels = tuple(name for name, *_ in table.series)
    averaged = options.get("resample") is not None  # into rows that are none of those that came
    restore = (lambda new, _: new) if averaged else partial(_give_back, data, table)
    rows = table.name, table.values, table.names, segments, labels, segments, restore, table.times
    return Recording(*rows, notes=table.notes, understood=table.understood)


def _give_back(data: Any, table: Table, new: Array, changed: Array) -> Any:
    """A frame, array or tensor like `data` with changed values in it, others as they are."""
    content: Any = table.source.content
    values = np.zeros((len(content), new.shape[1]), new.dtype)
    marks = np.zeros(values.shape, bool)
    values[table.order], marks[table.order] = new, changed
    if isinstance(content, np.ndarray):
        whole = marks.any() and content.dtype.kind != "f"  # integers become float64
        array = np.array(content, np.float64 if whole else content.dtype)
        array[marks.reshape(array.shape)] = values[marks]
        if not isinstance(data, Tensor):
            return array
        tensor = from_numpy(array)
        return tensor.to(data.device, data.dtype if data.is_floating_point() else tensor.dtype)
    import pandas as pd

    if not set(table.names) <= set(content.columns):
        raise DataError(f"{table.source.where} holds a series in every row: turn it into columns.")
    result = data.copy() if type(data) is type(content) else content.copy()
    for channel in np.flatnonzero(marks.any(0)):
        at = list(content.columns).index(table.names[channel])
        old = content.iloc[:, at]
        numbers = pd.to_numeric(old).to_numpy(np.float64, na_value=np.nan)
        numbers = np.where(marks[:, channel], values[:, channel], numbers)
        kind: Any = old.dtype if pd.api.types.is_float_dtype(old) else None
        result.isetitem(at, pd.Series(numbers, content.index, kind))
    return result


def _from_forecasting(data: ForecastingData) -> Recording:
    """Rows of a forecasting data set; what was not measured is missing."""
    values, training = data.values, data.splits.train
    if data.observed is not None:
        values = np.where(np.asarray(data.observed) > 0, values, np.float32(np.nan))
    named = {range(s.start, s.stop): s.name for s in data.segments if s.stop > s.start}
    train = tuple(range(max(s.start, training.start), min(s.stop, training.stop)) for s in named)
    restore = partial(_replace, data, "values")
    rows = data.name, values, data.columns, tuple(named), tuple(named.values()), train, restore
    borders = tuple(end for part in data.splits for end in (part.start, part.stop))
    return Recording(*rows, data.timestamps, borders, data.notes)


def _from_anomaly(data: AnomalyData) -> Recording:
    """The training rows of telemetry."""
    named = {segment.train: segment.name for segment in data.segments if len(segment.train)}
    columns, train = data.columns or tuple(map(str, range(data.channels))), tuple(named)
    restore = partial(_replace, data, "train")
    rows = data.name, data.train, columns, train, tuple(named.values()), train, restore
    kept = "Test rows are not looked at: their anomalies are to be found, not repaired."
    return Recording(*rows, notes=(*data.notes, kept))


def _replace(data: Any, name: str, new: Array, changed: Array) -> Any:
    """A data set with changed values in the precision of the others, which stay as they are."""
    old = getattr(data, name)
    return replace(data, **{name: np.where(changed, new.astype(old.dtype), old)})
