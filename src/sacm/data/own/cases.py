"""Labelled cases, a user's own or a benchmark's, as `ClassificationData`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from sacm.data.archive import Arrays, case_arrays, read_archive
from sacm.data.datasets import ClassificationData
from sacm.data.gaps import fill_cases
from sacm.data.own.ts_format import Cases, read_ts
from sacm.data.tables.columns import LARGEST
from sacm.data.tables.tensors import as_numpy
from sacm.errors import DataError


def classification_data(
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    subjects: Any = None,
    name: str | None = None,
) -> ClassificationData:
    """Read cases to classify.

    Args:
        X: An array `[N, C, L]` or `[N, L]` (NaN after the end of shorter cases), a list of arrays
            `[C, L_i]` or `[L_i]`, a `.ts` file (with its `_TEST.ts` beside a `_TRAIN.ts`), or an
            `.npz` file with `X_train`, `y_train` …
        y: Labels `[N]`, unless a file holds them.
        X_test: Cases to test, in any of these forms.
        y_test: Their labels.
        subjects: `[N]`; validation then holds out whole subjects.
        name: A short name. Default: that of the file, or "data".

    Returns:
        The data; `notes` says what was repaired.

    Raises:
        DataError: The cases cannot be read; the sentence says where and what to do.

    Example:
        >>> data = classification_data(np.zeros((6, 2, 30)), ["a", "b"] * 3)
        >>> data.classes, data.channels, data.length
        (('a', 'b'), 2, 30)
    """
    label = name or (Path(X).stem if isinstance(X, str | Path) else "data")
    if isinstance(X, str | Path):
        return from_padded(parse_case_file(Path(X), X_test), label)
    train = as_cases(X, y, label, "training")
    test = Cases([], np.array([], dtype=train.labels.dtype))
    if X_test is not None:
        test = as_cases(X_test, y_test, label, "test")
    arrays = case_arrays(train, test)
    if subjects is not None:
        arrays["subject_train"] = np.asarray(subjects)
        if len(arrays["subject_train"]) != len(train.values):
            raise DataError(
                f"{label}: {len(arrays['subject_train'])} subjects for {len(train.values)} cases."
            )
    return from_padded(arrays, label)


def parse_case_file(path: Path, test: Any) -> Arrays:
    """The arrays of a `.ts` pair or of an archive."""
    if path.suffix == ".npz":
        return read_archive(path, "classification")
    if path.suffix != ".ts":
        raise DataError(f"{path}: cases are read from .ts or .npz files, not {path.suffix!r}.")
    train = read_ts(path)
    beside = path.with_name(path.name.replace("_TRAIN.ts", "_TEST.ts"))
    if test is None and beside != path and beside.is_file():
        test = beside
    if test is None:
        return case_arrays(train, Cases([], np.array([], dtype=train.labels.dtype)))
    return case_arrays(train, read_ts(Path(test)))


def with_lengths(arrays: Arrays, label: str) -> Arrays:
    """An archive with the lengths of its cases, found by their padding where it has none."""
    if {"len_train", "len_test"} <= arrays.keys():
        return arrays
    train = as_cases(arrays["X_train"], arrays["y_train"], label, "training")
    test = as_cases(arrays["X_test"], arrays["y_test"], label, "test")
    return {**arrays, **case_arrays(train, test)}


def as_cases(X: Any, y: Any, label: str, part: str) -> Cases:
    """Arrays or lists as cases of their own lengths."""
    if y is None:
        raise DataError(f"{label}: the {part} cases have no labels y.")
    if isinstance(X, Tensor):
        X = as_numpy(X)
    listed = [as_case(case, f"{label}: {part} case {i + 1}") for i, case in enumerate(X)]
    labels = np.asarray(y)
    if not listed:
        raise DataError(f"{label}: there are no {part} cases.")
    if labels.ndim != 1 or len(labels) != len(listed):
        raise DataError(f"{label}: {len(listed)} {part} cases but labels {list(labels.shape)}.")
    channels = [len(case) for case in listed]
    if len(set(channels)) > 1:
        odd = next(i for i, count in enumerate(channels) if count != channels[0])
        raise DataError(
            f"{label}: {part} case {odd + 1} has {channels[odd]} channels where the first has "
            f"{channels[0]}."
        )
    return Cases(listed, labels.astype(str) if labels.dtype == object else labels)


def as_case(case: Any, where: str) -> np.ndarray:
    """One case as float32 `[C, L_i]`; NaN in all channels at the end is padding."""
    try:
        array = np.asarray(case, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} does not hold numbers of equal-length channels.") from error
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise DataError(f"{where} must be [C, L] or [L], got {list(array.shape)}.")
    if (np.abs(array) > LARGEST).any():
        raise DataError(f"{where} holds an infinite or too large value.")
    real = np.flatnonzero(~np.isnan(array).all(axis=0))
    if not len(real):
        raise DataError(f"{where} holds no value.")
    return array[:, : real[-1] + 1].astype(np.float32)


def from_padded(arrays: Arrays, label: str) -> ClassificationData:
    """Arrays of a source as a data set: test cases cut, gaps filled, classes sorted."""
    arrays = with_lengths(arrays, label)
    kinds = [arrays[f"y_{part}"].dtype for part in ("train", "test")]
    if kinds[0].kind != kinds[1].kind and len(arrays["y_test"]):
        raise DataError(f"{label}: training labels are {kinds[0]}, test labels {kinds[1]}.")
    lengths = arrays["len_train"].astype(np.int64)
    longest = int(lengths.max())
    notes = []
    cut = int((arrays["len_test"] > longest).sum())
    if cut:
        notes.append(f"{cut} test cases were cut to the longest training case ({longest} steps).")
    parts = {}
    for part in ("train", "test"):
        own = np.minimum(arrays[f"len_{part}"], longest).astype(np.int64)
        X = np.array(arrays[f"X_{part}"][:, :, :longest], dtype=np.float32)
        if len(X) and X.shape[1] != arrays["X_train"].shape[1]:
            raise DataError(
                f"{label}: {X.shape[1]} channels in the test cases, "
                f"{arrays['X_train'].shape[1]} in training."
            )
        filled = fill_cases(X, own, f"{label} ({part})")
        if filled:
            notes.append(f"{filled:,} missing values in the {part} cases were interpolated.")
        parts[part] = (X, own)
    labels = arrays["y_train"]
    classes = tuple(np.unique(labels).tolist())
    if labels.dtype.kind == "f" and len(classes) > max(2, len(labels) // 2):
        raise DataError(
            f"{label}: the {len(labels)} training cases have {len(classes)} different labels, such "
            f"as {classes[0]!r}: cases are classified, numbers cannot be learnt."
        )
    if len(classes) < 2:
        raise DataError(f"{label}: all training cases have the label {classes[0]!r}.")
    return ClassificationData(
        name=label,
        X_train=parts["train"][0],
        y_train=arrays["y_train"],
        X_test=parts["test"][0],
        y_test=arrays["y_test"],
        lengths_train=parts["train"][1],
        lengths_test=parts["test"][1],
        classes=classes,
        subjects_train=arrays.get("subject_train"),
        subjects_test=arrays.get("subject_test"),
        notes=tuple(notes),
    )
