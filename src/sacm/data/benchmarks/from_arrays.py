"""From the arrays of a source to a data set: cut, split and noted as the benchmark does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sacm.data import gaps
from sacm.data.benchmarks.catalogue import (
    AnomalyEntry,
    ClassificationEntry,
    DatasetEntry,
    ForecastingEntry,
)
from sacm.data.benchmarks.sources.archive import Arrays
from sacm.data.datasets import (
    AnomalyData,
    AnyData,
    ClassificationData,
    ForecastingData,
    TelemetrySegment,
)
from sacm.data.own.cases import from_padded
from sacm.data.splits import split_by_ratio
from sacm.errors import ArgumentError, DataError

SEGMENT_KEYS = ("segment", "machine", "channel")


Ratios = tuple[float, ...]


def build_dataset(
    entry: DatasetEntry,
    arrays: Arrays,
    *,
    mask_faults: bool = False,
    ratios: Ratios | None = None,
) -> AnyData:
    """The data set `entry` describes, out of `arrays`; `ratios` split all rows of a series anew."""
    if mask_faults and getattr(entry, "fault_code", None) is None:
        raise ArgumentError(f"{entry.name} has no fault codes to mask; only Weather does.")
    if ratios is not None and not isinstance(entry, ForecastingEntry):
        raise ArgumentError(f"{entry.name} is no series: it has a split of its own.")
    if isinstance(entry, ForecastingEntry):
        return build_forecasting(entry, arrays, mask_faults=mask_faults, ratios=ratios)
    if isinstance(entry, ClassificationEntry):
        return build_classification(entry, arrays)
    assert isinstance(entry, AnomalyEntry)
    return build_anomaly(entry, arrays)


def build_forecasting(
    entry: ForecastingEntry, arrays: Arrays, *, mask_faults: bool, ratios: Ratios | None = None
) -> ForecastingData:
    """The benchmark's rows and split, or all rows in the shares of `ratios`."""
    rows = entry.benchmark_rows if ratios is None else None
    found = arrays["values"].shape
    values = np.ascontiguousarray(arrays["values"][:rows], dtype=np.float32)
    columns = tuple(str(column) for column in arrays["columns"])
    if len(columns) != values.shape[1]:
        raise DataError(f"{entry.name}: {len(columns)} names for {values.shape[1]} columns.")
    splits = entry.splits(len(values)) if ratios is None else split_by_ratio(len(values), ratios)
    policy: gaps.Policy = "interpolate"
    if mask_faults:
        values = np.where(values == np.float32(entry.fault_code or 0), np.float32(np.nan), values)
        policy = "mask"
    filled = gaps.fill(values, splits, policy=policy, columns=columns, where=entry.name)
    timestamps = arrays.get("timestamps")
    notes = [
        *entry.facts,
        difference_note("rows", found[0], entry.rows),
        difference_note("channels", found[1], entry.channels),
        filled.note,
        "This copy has no timestamps." if timestamps is None and entry.frequency else None,
    ]
    return ForecastingData(
        name=entry.name,
        values=filled.values,
        columns=columns,
        splits=splits,
        timestamps=None if timestamps is None else timestamps[:rows],
        frequency=entry.frequency,
        observed=filled.observed,
        notes=tuple(note for note in notes if note),
    )


def build_classification(entry: ClassificationEntry, arrays: Arrays) -> ClassificationData:
    """Cases cut to the longest training case, gaps filled."""
    data = from_padded(arrays, entry.name)
    counts = (len(data.X_train), len(data.X_test))
    expected = entry.cases or counts
    notes = [
        *entry.facts,
        *data.notes,
        difference_note("training cases", counts[0], expected[0]),
        difference_note("test cases", counts[1], expected[1]),
        difference_note("channels", data.channels, entry.channels),
        difference_note("classes", len(data.classes), entry.classes),
    ]
    return replace(data, notes=tuple(note for note in notes if note))


def build_anomaly(entry: AnomalyEntry, arrays: Arrays) -> AnomalyData:
    """Rows, labels and borders."""
    train = np.ascontiguousarray(arrays["train"], dtype=np.float32)
    test = np.ascontiguousarray(arrays["test"], dtype=np.float32)
    segments = read_segments(arrays)
    notes = [
        *entry.facts,
        difference_note("training rows", len(train), entry.rows[0]),
        difference_note("test rows", len(test), entry.rows[1]),
        absent_segments(arrays),
    ]
    if entry.source in ("smd", "telemanom") and not segments:
        notes.append(
            "The borders between machines or channel files are not known in this copy, so windows "
            "cross them."
        )
    return AnomalyData(
        name=entry.name,
        train=train,
        test=test,
        labels=arrays["labels"].astype(np.uint8),
        columns=tuple(str(position) for position in range(train.shape[1])),
        segments=segments,
        notes=tuple(note for note in notes if note),
    )


def read_segments(arrays: Arrays) -> tuple[TelemetrySegment, ...]:
    """Runs of equal segment numbers as row ranges."""
    key = next((key for key in SEGMENT_KEYS if f"{key}_names" in arrays), None)
    if key is None:
        return ()
    train, test = rows_by_number(arrays[f"{key}_train"]), rows_by_number(arrays[f"{key}_test"])
    nothing = range(0)
    return tuple(
        TelemetrySegment(str(label), train.get(number, nothing), test.get(number, nothing))
        for number, label in enumerate(arrays[f"{key}_names"])
    )


def rows_by_number(numbers: np.ndarray) -> dict[int, range]:
    """The rows of each number; every number must form a single run."""
    borders = np.flatnonzero(np.diff(numbers.astype(np.int64))) + 1
    starts, stops = np.append(0, borders), np.append(borders, len(numbers))
    found: dict[int, range] = {}
    for start, stop in zip(starts, stops, strict=True):
        number = int(numbers[start])
        if number in found:
            raise DataError(f"Segment {number} is in two places (again at row {start + 1}).")
        found[number] = range(int(start), int(stop))
    return found


def absent_segments(arrays: Arrays) -> str | None:
    """A note on machines that a copy says it lacks."""
    absent = arrays.get("missing_machines")
    if absent is None or not len(absent):
        return None
    return f"Machines not in this copy: {', '.join(str(name) for name in absent)}."


def difference_note(what: str, found: int, expected: int) -> str | None:
    """A note on a copy that differs from the published data set."""
    if found == expected:
        return None
    return f"This copy has {found:,} {what}, the published data set {expected:,}."
