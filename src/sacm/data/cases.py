"""Labelled cases, a user's own or a data set's, as `ClassificationData`; the `.ts` text format."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from sacm.data.datasets import DATA_TYPES, ClassificationData, split_cases
from sacm.data.load import read_bytes
from sacm.data.scaling import fill_cases
from sacm.errors import ArgumentError, DataError
from sacm.settings import ReadOptions
from sacm.types import TaskName

Arrays = dict[str, np.ndarray]
LARGEST = np.float64(np.finfo(np.float32).max)
TEST_SHARE = 0.3  # of the cases of a table, by class


class Cases(NamedTuple):
    """Cases `[C, L_i]` and their labels."""

    values: list[np.ndarray]
    labels: np.ndarray


def classification_data(
    X: Any,
    y: Any = None,
    *,
    subjects: Any = None,
    name: str | None = None,
    **options: Any,
) -> ClassificationData:
    """Read cases to classify.

    Args:
        X: An array `[N, C, L]` or `[N, L]` (NaN after the end of shorter cases), a list of arrays
            `[C, L_i]` or `[L_i]`, a `.ts` file (with its `_TEST.ts` beside a `_TRAIN.ts`), an
            `.npz` file with `X_train`, `y_train` …, or a file of a table with a row a step.
        y: Labels `[N]`, unless a file holds them.
        subjects: `[N]`; validation then holds out whole subjects.
        name: A short name. Default: that of the file, or "data".
        options: How to read a table: `id` names the column that tells cases apart, `label` that of
            their class; see `sacm.settings.ReadOptions` for others.

    Example:
        >>> data = classification_data(np.zeros((6, 2, 30)), ["a", "b"] * 3)
        >>> data.classes, data.channels, data.length
        (('a', 'b'), 2, 30)
    """
    label = name or (Path(X).stem if isinstance(X, str | Path) else "data")
    if isinstance(X, str | Path):
        return from_padded(parse_case_file(Path(X), options), label)
    arrays = case_arrays(as_cases(X, y, label, "training"), None)
    if subjects is not None:
        arrays["subject_train"], count = np.asarray(subjects), len(arrays["y_train"])
        if len(subjects) != count:
            raise DataError(f"{label}: {len(subjects)} subjects for {count} cases.")
    return from_padded(arrays, label)


def parse_case_file(path: Path, options: Mapping[str, Any]) -> Arrays:
    """The arrays of a `.ts` pair, of an archive, or of a table with a row a step."""
    if path.suffix not in (".npz", ".ts"):
        cases, _ = read_case_table(path, options)
        rows = split_cases(cases.labels, fraction=TEST_SHARE)
        return case_arrays(*(Cases([cases.values[k] for k in r], cases.labels[r]) for r in rows))
    if options:
        raise ArgumentError(f"{', '.join(options)}: .ts and .npz files of cases need no options.")
    if path.suffix == ".npz":
        return read_archive(path, "classification")
    test = path.with_name(path.name.replace("_TRAIN.ts", "_TEST.ts"))
    return case_arrays(read_ts(path), read_ts(test) if test != path and test.is_file() else None)


def read_case_table(path: Path, options: Mapping[str, Any]) -> tuple[Cases, list[str]]:
    """Cases of a table with a row a step, and their names in the column `id`."""
    from sacm.data.read import load_source, read_table

    chosen = ReadOptions.of(options)
    if not chosen.id or not chosen.label:
        raise DataError(
            f"{path}: cases are read from .ts or .npz files, or from a table in which --id "
            "names the column that tells cases apart and --label that of their class."
        )
    loaded = load_source(path, chosen)
    content: Any = loaded.content
    if isinstance(content, np.ndarray) or chosen.label not in content.columns:
        raise DataError(f"{path} has no column {chosen.label!r}.")
    ignore = (*(chosen.ignore or ()), chosen.label)
    unlabelled = chosen.model_copy(update={"label": None, "ignore": ignore})
    table, labels = read_table(loaded, unlabelled, grid=False), []
    for case, start, stop in table.series:
        classes = content[chosen.label].iloc[table.order[start:stop]].dropna().unique()
        if len(classes) != 1:
            raise DataError(f"{path}: case {case!r} has {len(classes)} labels: it needs one.")
        labels.append(classes[0])
    values = [table.values[start:stop].T.astype(np.float32) for _, start, stop in table.series]
    return Cases(values, np.asarray(labels)), [case for case, *_ in table.series]


def as_cases(X: Any, y: Any, label: str, part: str) -> Cases:
    """Arrays or lists as cases of their own lengths; NaN in all channels at the end is padding."""
    if y is None:
        raise DataError(f"{label}: the {part} cases have no labels y.")
    if isinstance(X, Tensor):
        X = X.detach().cpu().float().numpy()
    labels = np.asarray(y)
    listed: list[np.ndarray] = []
    for number, given in enumerate(X, 1):
        where = f"{label}: {part} case {number}"
        try:
            case = np.atleast_2d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"{where} does not hold numbers of equal-length channels.") from error
        if case.ndim != 2:
            raise DataError(f"{where} must be [C, L] or [L], got {list(case.shape)}.")
        if (np.abs(case) > LARGEST).any():
            raise DataError(f"{where} holds an infinite or too large value.")
        real = np.flatnonzero(~np.isnan(case).all(axis=0))
        if not len(real):
            raise DataError(f"{where} holds no value.")
        if listed and len(case) != len(listed[0]):
            raise DataError(f"{where} has {len(case)} channels, the first {len(listed[0])}.")
        listed.append(case[:, : real[-1] + 1].astype(np.float32))
    if not listed:
        raise DataError(f"{label}: there are no {part} cases.")
    if labels.ndim != 1 or len(labels) != len(listed):
        raise DataError(f"{label}: {len(listed)} {part} cases but labels {list(labels.shape)}.")
    return Cases(listed, labels.astype(str) if labels.dtype == object else labels)


def from_padded(arrays: Arrays, label: str) -> ClassificationData:
    """Arrays of a source as a data set: test cases cut, gaps filled, classes sorted."""
    if not {"len_train", "len_test"} <= arrays.keys():  # found by the padding
        train = as_cases(arrays["X_train"], arrays["y_train"], label, "training")
        test = as_cases(arrays["X_test"], arrays["y_test"], label, "test")
        arrays = {**arrays, **case_arrays(train, test)}
    labels, test_labels = arrays["y_train"], arrays["y_test"]
    if labels.dtype.kind != test_labels.dtype.kind and len(test_labels):
        raise DataError(
            f"{label}: training labels are {labels.dtype}, test labels {test_labels.dtype}."
        )
    longest, notes = int(arrays["len_train"].max()), []
    cut = int((arrays["len_test"] > longest).sum())
    if cut:
        notes = [f"{cut} test cases were cut to the longest training case ({longest} steps)."]
    fields: dict[str, Any] = {"y_train": labels, "y_test": test_labels}
    for part in ("train", "test"):
        lengths = np.minimum(arrays[f"len_{part}"], longest).astype(np.int64)
        cases = np.array(arrays[f"X_{part}"][:, :, :longest], dtype=np.float32)
        filled = fill_cases(cases, lengths, f"{label} ({part})")
        if filled:
            notes.append(f"{filled:,} missing values in the {part} cases were interpolated.")
        fields |= {f"X_{part}": cases, f"lengths_{part}": lengths}
        fields[f"subjects_{part}"] = arrays.get(f"subject_{part}")
    classes = tuple(np.unique(labels).tolist())
    if labels.dtype.kind == "f" and len(classes) > max(2, len(labels) // 2):
        raise DataError(
            f"{label}: the {len(labels)} training cases have {len(classes)} different labels, such "
            f"as {classes[0]!r}: cases are classified, numbers cannot be learnt."
        )
    if len(classes) < 2:
        raise DataError(f"{label}: all training cases have the label {classes[0]!r} (1 class).")
    return ClassificationData(name=label, **fields, classes=classes, notes=tuple(notes))


def case_arrays(train: Cases, test: Cases | None) -> Arrays:
    """Pad cases of different lengths, as arrays of training and test."""
    test = Cases([], train.labels[:0]) if test is None else test
    longest = max(case.shape[1] for case in (*train.values, *test.values))
    arrays = {"y_train": train.labels, "y_test": test.labels}
    for part, cases in (("train", train.values), ("test", test.values)):
        arrays[f"X_{part}"] = pad(cases, len(train.values[0]), longest)
        arrays[f"len_{part}"] = np.array([case.shape[1] for case in cases], dtype=np.int32)
    return arrays


def pad(cases: list[np.ndarray], channels: int, length: int) -> np.ndarray:
    """Cases `[C, L_i]` as `[N, C, length]` with NaN at the end."""
    result = np.full((len(cases), channels, length), np.nan, dtype=np.float32)
    for place, case in zip(result, cases, strict=True):
        if len(case) != channels:
            raise DataError(f"A test case has {len(case)} channels, training has {channels}.")
        place[:, : case.shape[1]] = case
    return result


def read_archive(path: Path, task: TaskName) -> Arrays:
    """Read the arrays of an `.npz` file."""
    content = io.BytesIO(read_bytes(path))
    try:
        arrays = dict(np.load(content, allow_pickle=False))
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        if "Object arrays" in str(error):
            wanted = "save labels as y.astype(str), without missing ones, and values as numbers"
            raise DataError(f"{path} holds an array of Python objects: {wanted}.") from error
        raise DataError(f"{path} is a damaged archive: remove it and fetch it again.") from error
    for key in DATA_TYPES[task].required_arrays:
        if key not in arrays:
            raise DataError(f"{path} is not a {task} archive: it has no array {key!r}.")
    return arrays


def read_ts(path: Path, content: bytes | None = None) -> Cases:
    """Read a `.ts` file, or its `content`: channels of comma-separated numbers, then a label."""
    content = read_bytes(path) if content is None else content
    text = content.decode("utf-8", errors="replace")
    head, *body = re.split(r"^\s*@data\s*$", text, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE)
    if re.search(r"@timestamps\s+true|@targetlabel|@classlabel\s+false", head.lower()):
        raise DataError(f"{path} has timestamps or no class labels, which is not supported.")
    if not body:
        raise DataError(f"{path} has no @data line: it is not a .ts file, or is cut off.")
    lines = [line.strip() for line in body[0].splitlines()]
    rows = [line.replace("?", "nan").split(":") for line in lines if line and line[0] != "#"]
    if not rows:
        raise DataError(f"{path} has no cases after @data.")
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise DataError(f"{path}: case {number} has no class label: the file may be cut off.")
    values = [[channel.split(",") for channel in row[:-1]] for row in rows]
    return as_cases(values, [row[-1].strip() for row in rows], str(path), "given")
