"""What a data set is once it has been read: one frozen dataclass for each task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sacm.data.splits import Splits, segment_ranges, split_by_class, split_by_subject
from sacm.errors import ArgumentError, DataError
from sacm.types import TaskName


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

    `values` is `[T, C]` float32, NaN where nothing was measured; once a strategy has prepared the
    data they are finite, and `observed` (bool, or weights in [0, 1]) says what was measured;
    `interpolated` is True where a gap was filled from both sides.
    `targets`, where given, replaces `values` as what is to be forecast (Synth-12: clean targets
    behind noisy inputs). `broken` is True where a value was broken on purpose: the truth for tests,
    not for models. `target` names the channels to forecast, empty for all; the others are inputs.
    `understood` says how a user's table was read. With several series the rows are ordered split
    by split, series by series, and `segments` holds the borders; one series has a single segment.

    `scaling` is "series" if each of several series is to be scaled by its own training rows. With
    `reach_back` the inputs of validation and test windows may lie in the rows before their split;
    targets never do.

    `covariates` `[T, k]` are the columns named in `past`, `future` and `static`, in this order;
    `ahead` holds, by series, those `[N, k]` of the rows after its last one. `zone` is the time zone
    of timestamps that are in UTC, None if they are by the local clock.
    """

    task: ClassVar[TaskName] = "forecasting"
    required_arrays: ClassVar[tuple[str, ...]] = ("values", "columns")

    name: str
    values: np.ndarray
    columns: tuple[str, ...]
    splits: Splits
    timestamps: np.ndarray | None = None
    frequency: str | None = None
    targets: np.ndarray | None = None
    observed: np.ndarray | None = None
    segments: tuple[Segment, ...] = ()
    notes: tuple[str, ...] = ()
    broken: np.ndarray | None = None
    target: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()
    covariates: np.ndarray | None = None
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    ahead: dict[str, np.ndarray] | None = None
    zone: str | None = None
    scaling: str | None = None
    reach_back: bool = False
    interpolated: np.ndarray | None = None

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
        """Number of channels C."""
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
        wanted = np.isin(self.columns, self.target)[None, :]  # [1, C]
        if self.observed is None:
            return np.repeat(wanted, len(self.values), axis=0)
        counted: np.ndarray = self.observed * wanted  # observed may be weights
        return counted

    def ranges(self, split: str) -> tuple[range, ...]:
        """The rows of `split`, one range for each segment that has any."""
        pieces = (range(segment.start, segment.stop) for segment in self.segments)
        return segment_ranges(pieces, self.splits[split])

    def last_rows(self, count: int) -> dict[str, np.ndarray]:
        """Positions of the last `count` rows of every series: where a forecast starts from."""
        rows: dict[str, list[np.ndarray]] = {}
        for segment in self.segments:
            rows.setdefault(segment.name, []).append(np.arange(segment.start, segment.stop))
        return {name: np.concatenate(parts)[-count:] for name, parts in rows.items()}

    def with_training_fraction(
        self, fraction: float, *, input_len: int, horizon: int
    ) -> ForecastingData:
        """The same data with only the chronologically first part of the training windows.

        Whatever is fitted on `splits.train` then sees that fraction alone.
        """
        if not 0 < fraction <= 1:
            raise ArgumentError(f"The training fraction must be in (0, 1], got {fraction}.")
        if len(self.segments) > 1:
            raise ArgumentError(f"{self.name} holds several series: cut each of them yourself.")
        train = self.splits.train
        windows = len(train) - input_len - horizon + 1
        if windows < 1:
            raise DataError(
                f"{self.name}: no window of {input_len} + {horizon} fits in {len(train)} training "
                "rows."
            )
        kept = max(1, int(windows * fraction)) + input_len + horizon - 1
        cut = replace(self.splits, train=range(train.start, train.start + kept))
        return replace(self, splits=cut)


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
        """Number of channels C."""
        return int(self.X_train.shape[1])

    @property
    def length(self) -> int:
        """Number of time steps L."""
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

    def validation_split(
        self, fraction: float = 0.2, *, seed: int = 42
    ) -> tuple[np.ndarray, np.ndarray]:
        """Training and validation cases: by whole subjects where they are known, else by class."""
        if self.subjects_train is not None:
            return split_by_subject(self.subjects_train, fraction, seed=seed)
        return split_by_class(self.y_train, fraction, seed=seed)


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
        if self.train.ndim != 2 or self.test.ndim != 2:
            raise DataError(f"{self.name}: training and test values must be [T, C].")
        if self.train.shape[1] != self.test.shape[1]:
            raise DataError(
                f"{self.name}: {self.train.shape[1]} training channels but "
                f"{self.test.shape[1]} test channels."
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
        """Number of channels C."""
        return int(self.train.shape[1])

    def only(self, name: str) -> AnomalyData:
        """One machine or channel file alone.

        Raises:
            ArgumentError: There is none of that name.
        """
        found = next((each for each in self.segments if each.name == name), None)
        if found is None:
            known = ", ".join(each.name for each in self.segments[:8])
            raise ArgumentError(f"{self.name} has no part {name!r}: it has {known} …")
        test = slice(found.test.start, found.test.stop)
        return AnomalyData(
            f"{self.name}@{name}",
            self.train[found.train.start : found.train.stop],
            self.test[test],
            self.labels[test],
            self.columns,
            notes=self.notes,
        )


AnyData = ForecastingData | ClassificationData | AnomalyData

DATA_TYPES: dict[TaskName, type[AnyData]] = {
    kind.task: kind for kind in (ForecastingData, ClassificationData, AnomalyData)
}
