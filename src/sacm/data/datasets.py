"""What a data set is once it has been read: one frozen dataclass for each task."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, DataError
from sacm.types import TaskName

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_RATIOS = (0.7, 0.1, 0.2)
HELD_OUT = 0.2  # share of training cases, or of training rows of telemetry, that validates


@dataclass(frozen=True)
class Splits:
    """Half-open row ranges; `splits.train` and `splits["train"]` are the same."""

    train: range
    val: range
    test: range

    def __getitem__(self, name: str) -> range:
        rows: range = getattr(self, name)
        return rows

    def __iter__(self) -> Iterator[range]:
        return iter((self.train, self.val, self.test))


def split_by_ratio(rows: int, ratios: tuple[float, ...] = DEFAULT_RATIOS) -> Splits:
    """`int(rows * r)` rows train and validate, the rest test; without a test share it validates."""
    if len(ratios) != 3 or min(ratios) < 0 or ratios[0] <= 0 or abs(sum(ratios) - 1) > 1e-6:
        raise ArgumentError(
            "ratios must be three shares (train, val, test) that add up to 1, none negative and "
            f"training above 0; got {tuple(ratios)}."
        )
    train, val = int(rows * ratios[0]), int(rows * ratios[1])
    if ratios[2] == 0:
        val = rows - train
    return Splits(range(train), range(train, train + val), range(train + val, rows))


def segment_ranges(segments: Iterable[range], rows: range) -> tuple[range, ...]:
    """The parts of `rows` inside each segment, empty ones left out."""
    cut = (range(max(s.start, rows.start), min(s.stop, rows.stop)) for s in segments)
    return tuple(part for part in cut if len(part))


def split_cases(
    labels: np.ndarray, subjects: np.ndarray | None = None, *, fraction: float = HELD_OUT
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted training and validation cases: a share of every class, or of whole subjects."""
    random = np.random.default_rng(42)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if subjects is not None:
        groups = [np.unique(subjects)]
        if len(groups[0]) < 2:
            raise DataError("A split by subject needs at least two subjects in the training cases.")
    counts = [min(max(1, round(fraction * len(each))), len(each) - 1) for each in groups]
    pairs = zip(groups, counts, strict=True)
    chosen = np.concatenate([random.permutation(each)[:count] for each, count in pairs])
    held = np.isin(np.arange(len(labels)) if subjects is None else subjects, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)


class Segment(NamedTuple):
    """Rows `start … stop - 1` that belong together; no window reaches beyond them."""

    name: str
    start: int
    stop: int


class TelemetrySegment(NamedTuple):
    """One machine or channel file: its rows in the training and in the test array."""

    name: str
    train: range
    test: range


@dataclass(frozen=True, eq=False)
class ForecastingData:
    """A multivariate series (or several, end to end) with its chronological split.

    Once a strategy has prepared the data, values are finite and `observed` says what was measured.
    With several series the rows are ordered split by split, series by series.
    """

    task: ClassVar[TaskName] = "forecasting"
    required_arrays: ClassVar[tuple[str, ...]] = ("values", "columns")

    name: str
    values: np.ndarray  # [T, C] float32, NaN where nothing was measured
    columns: tuple[str, ...]
    splits: Splits
    timestamps: np.ndarray | None = None
    frequency: str | None = None
    targets: np.ndarray | None = None  # what is to be forecast, where it is not `values`
    observed: np.ndarray | None = None  # bool, or weights in [0, 1]
    segments: tuple[Segment, ...] = ()  # borders of several series, or one segment
    notes: tuple[str, ...] = ()
    broken: np.ndarray | None = None  # where a value was broken on purpose: the truth for tests
    target: tuple[str, ...] = ()  # the channels to forecast, empty for all
    understood: tuple[str, ...] = ()  # how a user's table was read
    covariates: np.ndarray | None = None  # [T, k]: past, then future
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    ahead: dict[str, np.ndarray] | None = None  # by series, covariates [N, k] after its last row
    scaling: str | None = None  # "series": each is scaled by its own training rows
    reach_back: bool = False  # whether inputs of validation and test windows may lie before them
    interpolated: np.ndarray | None = None  # True where a gap was filled from both sides
    form: Form | None = None  # kind of table that was read; forecasts have the same

    def __post_init__(self) -> None:
        if self.values.ndim != 2:
            raise DataError(f"{self.name}: values must be [T, C], got {list(self.values.shape)}.")
        for what in ("timestamps", "targets", "observed", "broken", "covariates", "interpolated"):
            other = getattr(self, what)
            if other is not None and len(other) != len(self.values):
                raise DataError(
                    f"{self.name}: {what} has {len(other)} rows but values has {len(self.values)}."
                )
        if not self.segments:
            whole = (Segment(self.name, 0, len(self.values)),)
            object.__setattr__(self, "segments", whole)

    @property
    def channels(self) -> int:
        return int(self.values.shape[1])

    @property
    def clean(self) -> np.ndarray:
        """The targets `[T, C]`: the clean series where there is one, otherwise the values."""
        return self.values if self.targets is None else self.targets

    @property
    def counted(self) -> np.ndarray | None:
        """Where targets count in errors, `[T, C]`: observed, and to be forecast; None: all do."""
        if not self.target:
            return self.observed
        observed = np.ones(self.values.shape, bool) if self.observed is None else self.observed
        return np.asarray(observed * np.isin(self.columns, self.target))

    def take(self, places: Sequence[int]) -> ForecastingData:
        """Some of the channels."""
        names = ("values", "targets", "observed", "broken", "interpolated")
        arrays = {name: getattr(self, name) for name in names}
        taken: Any = {k: v if v is None else v[:, places].copy() for k, v in arrays.items()}
        return replace(self, columns=tuple(self.columns[place] for place in places), **taken)

    def ranges(self, split: str) -> tuple[range, ...]:
        """The rows of `split`, one range for each segment that has any."""
        pieces = (range(segment.start, segment.stop) for segment in self.segments)
        return segment_ranges(pieces, self.splits[split])

    def by_series(self, ranges: Iterable[range]) -> dict[str, list[range]]:
        """Ranges of rows, each inside one segment, by their series."""
        starts = [segment.start for segment in self.segments]
        grouped: dict[str, list[range]] = {}
        for rows in ranges:
            name = self.segments[bisect_right(starts, rows.start) - 1].name
            grouped.setdefault(name, []).append(rows)
        return grouped

    def last_rows(self, count: int) -> dict[str, np.ndarray]:
        """Positions of the last `count` rows of every series: where a forecast starts from."""
        rows: dict[str, list[np.ndarray]] = {}
        for segment in self.segments:
            rows.setdefault(segment.name, []).append(np.arange(segment.start, segment.stop))
        return {name: np.concatenate(parts)[-count:] for name, parts in rows.items()}


@dataclass(frozen=True, eq=False)
class ClassificationData:
    """Labelled cases `[N, C, L]`; after the end of a shorter case the values are NaN.

    `L` is the length of the longest training case: longer test cases were cut. Labels are kept as
    they came; `classes` are the sorted labels of the training cases.
    """

    task: ClassVar[TaskName] = "classification"
    required_arrays: ClassVar[tuple[str, ...]] = ("X_train", "X_test", "y_train", "y_test")

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    lengths_train: np.ndarray
    lengths_test: np.ndarray
    classes: tuple[Any, ...]
    subjects_train: np.ndarray | None = None
    subjects_test: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def channels(self) -> int:
        return int(self.X_train.shape[1])

    @property
    def length(self) -> int:
        return int(self.X_train.shape[2])

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Positions `[N]` of `labels` in `classes`."""
        table = np.asarray(self.classes)
        codes = np.searchsorted(table, labels).clip(max=len(table) - 1)
        unknown = np.flatnonzero(table[codes] != labels)
        if len(unknown):
            raise DataError(
                f"{self.name}: label {str(labels[unknown[0]])!r} (case {unknown[0] + 1}) is not "
                f"among the {len(table)} training classes."
            )
        return codes.astype(np.int64)


@dataclass(frozen=True, eq=False)
class AnomalyData:
    """Training rows `[T, C]` without labels, test rows with 0/1 labels, and the borders in both."""

    task: ClassVar[TaskName] = "anomaly"
    required_arrays: ClassVar[tuple[str, ...]] = ("train", "test", "labels")

    name: str
    train: np.ndarray
    test: np.ndarray
    labels: np.ndarray
    columns: tuple[str, ...]
    segments: tuple[TelemetrySegment, ...] = ()
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.train.ndim != 2 or self.test.ndim != 2 or self.train.shape[1] != self.test.shape[1]:
            raise DataError(
                f"{self.name}: training and test values must be [T, C] with the same channels, got "
                f"{list(self.train.shape)} and {list(self.test.shape)}."
            )
        if len(self.labels) != len(self.test):
            raise DataError(
                f"{self.name}: {len(self.labels)} labels for {len(self.test)} test rows."
            )
        if not self.segments:
            whole = TelemetrySegment(self.name, range(len(self.train)), range(len(self.test)))
            object.__setattr__(self, "segments", (whole,))

    @property
    def channels(self) -> int:
        return int(self.train.shape[1])

    def training_ranges(self) -> tuple[tuple[range, ...], tuple[range, ...]]:
        """The rows of `train` that train, and the last ones, which validate; by segment."""
        rows, segments = range(len(self.train)), [each.train for each in self.segments]
        border = int(len(rows) * (1 - HELD_OUT))
        return segment_ranges(segments, rows[:border]), segment_ranges(segments, rows[border:])

    def segment_names(self) -> np.ndarray:
        """The machine or channel file of every test row, `[T]`."""
        sizes = [len(each.test) for each in self.segments]
        return np.repeat([each.name for each in self.segments], sizes)

    def only(self, name: str) -> AnomalyData:
        """One machine or channel file alone."""
        parts = {each.name: each for each in self.segments}
        if name not in parts:
            known = ", ".join(list(parts)[:8])
            raise ArgumentError(f"{self.name} has no part {name!r}: it has {known} …")
        train, test = (slice(r.start, r.stop) for r in (parts[name].train, parts[name].test))
        return replace(
            self,
            name=f"{self.name}@{name}",
            train=self.train[train],
            test=self.test[test],
            labels=self.labels[test],
            segments=(),
        )


AnyData = ForecastingData | ClassificationData | AnomalyData

DATA_TYPES: dict[TaskName, type[AnyData]] = {
    kind.task: kind for kind in (ForecastingData, ClassificationData, AnomalyData)
}

# Notes describe how the data came here; the same content found elsewhere is the same data. What
# lies ahead of the last row is for forecasts, not for training.
IGNORED = ("notes", "understood", "ahead", "form")


def fingerprint(data: AnyData) -> str:
    """Hash everything of a data set that models see: 16 hexadecimal digits.

    Optional fields that are absent do not count: a field that is added later changes no hash.
    """
    digest = hashlib.sha256(type(data).__name__.encode())
    for item in fields(data):
        value = getattr(data, item.name)
        empty = value is None or value is False or (isinstance(value, tuple) and not value)
        if item.name not in IGNORED and not (empty and item.default is not MISSING):
            digest.update(item.name.encode())
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype.kind}{value.dtype.itemsize}{value.shape}".encode())
                digest.update(value.tobytes())
            else:
                digest.update(repr(value).encode())
    return digest.hexdigest()[:16]


Kind = Literal["array", "tensor", "series", "pandas", "polars"]


@dataclass(frozen=True)
class Form:
    """The kind of object the data came in, and how it told the time."""

    kind: Kind
    flat: bool = False  # [T], not [T, C]
    long: bool = False
    time: str | None = None  # the time column, or the name of the index
    indexed: bool = False
    zone: str | None = None  # zone of the times in the user's data
    local: bool = False
    counters: dict[str, tuple[float, float]] = field(default_factory=dict)  # last value and step
    id_type: str | None = None
    id: str = "unique_id"  # of a long table: the column of series
    channels: tuple[str, ...] = ("y",)  # and those of values
    rows: int = 0  # before a forecast, which counts on where rows have no time

    def as_table(self) -> Self:
        """The form of a pandas table with its time in a column, `time` if its index had no name."""
        name = self.time or ("time" if self.indexed else None)
        return replace(self, kind="pandas", flat=False, indexed=False, time=name)

    def give(
        self,
        values: np.ndarray,
        *,
        series: Sequence[str],
        columns: Sequence[str],
        times: np.ndarray | None,
    ) -> Any:
        """Give forecasts `[S, H, C]` back as an object like the one the data came in.

        Polars becomes pandas. `times` `[S, H]` are future timestamps, None without dates.
        """
        if self.kind in ("array", "tensor"):
            array = values[0, :, 0] if self.flat else values[0]
            return torch.from_numpy(array) if self.kind == "tensor" else array
        import pandas as pd

        if self.long and len(series) == 1 and not set(columns) <= set(self.channels):
            # The series are channels side by side.
            series, values = columns, values[0].T[:, :, None]  # [S, H, 1]
            times = None if times is None else np.repeat(times, len(series), axis=0)
            columns = self.channels
        steps = values.shape[1]
        frame = pd.DataFrame(np.concatenate(values).astype(np.float64), columns=list(columns))
        stamps: Any = None
        if times is not None:
            stamps = self.write_times(np.concatenate(times))
        elif self.counters:
            ends = np.array([self.counters[name] for name in (series if self.long else [""])])
            stamps = (ends[:, :1] + ends[:, 1:] * np.arange(1, steps + 1)).ravel()
            stamps = stamps.astype(np.int64) if (ends % 1 == 0).all() else stamps
        if self.long:
            frame.insert(0, self.time or "ds", stamps)
            frame.insert(0, self.id, np.repeat(np.array(series, dtype=object), steps))
            frame = frame.astype({self.id: self.id_type}) if self.id_type else frame
        elif stamps is None:
            frame.index = pd.RangeIndex(self.rows, self.rows + steps)
        elif self.indexed:
            frame.index = pd.Index(stamps, name=self.time)
        else:
            frame.insert(0, self.time, stamps)
        return frame.iloc[:, 0] if self.kind == "series" else frame

    def write_times(self, times: np.ndarray) -> pd.Series:
        """Timestamps `[T]` as dates with the zone of the user's data."""
        import pandas as pd

        stamps = pd.Series(times)
        if self.zone is None:
            return stamps
        if self.local:  # an hour that the clock shows twice is taken the first time
            twice = np.ones(len(times), dtype=bool)
            return stamps.dt.tz_localize(self.zone, ambiguous=twice, nonexistent="shift_forward")
        return stamps.dt.tz_localize("UTC").dt.tz_convert(self.zone)


def as_numpy(tensor: Tensor) -> np.ndarray:
    """The values of a dense tensor; bfloat16, which NumPy lacks, becomes float32 without loss."""
    if tensor.layout is not torch.strided or tensor.is_meta:
        raise DataError("the data are a tensor without plain values: pass a dense one.")
    values = tensor.detach().cpu()
    array: np.ndarray = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return array
