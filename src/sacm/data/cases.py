"""Labelled cases, a user's own or a data set's, as `ClassificationData`; the `.ts` text format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from sacm.data.datasets import DATA_TYPES, ClassificationData, split_by_class
from sacm.data.scaling import fill_cases
from sacm.errors import ArgumentError, DataError
from sacm.settings import ReadOptions
from sacm.types import TaskName

Arrays = dict[str, np.ndarray]


def check_file(path: Path) -> None:
    """Refuse what is not a readable, non-empty file."""
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")


def read_archive(path: Path, task: TaskName) -> Arrays:
    """Read the arrays of an `.npz` file."""
    check_file(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: permission denied.") from error
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        raise DataError(f"{path} is a damaged archive: remove it and fetch it again.") from error
    absent = [key for key in DATA_TYPES[task].required_arrays if key not in arrays]
    if absent:
        raise DataError(f"{path} is not a {task} archive: it has no array {absent[0]!r}.")
    return arrays


LARGEST = np.float64(np.finfo(np.float32).max)
TEST_SHARE = 0.3  # of the cases of a table, by class


@dataclass(frozen=True)
class Cases:
    """Cases `[C, L_i]` and their labels."""

    values: list[np.ndarray]
    labels: np.ndarray


def classification_data(
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    subjects: Any = None,
    name: str | None = None,
    options: ReadOptions | Mapping[str, Any] | None = None,
) -> ClassificationData:
    """Read cases to classify.

    Args:
        X: An array `[N, C, L]` or `[N, L]` (NaN after the end of shorter cases), a list of arrays
            `[C, L_i]` or `[L_i]`, a `.ts` file (with its `_TEST.ts` beside a `_TRAIN.ts`), or an
            `.npz` file with `X_train`, `y_train` …; or a table with a row a step, in which a column
            tells cases apart (`id`) and one has their class (`label`).
        y: Labels `[N]`, unless a file holds them.
        X_test: Cases to test, in any of these forms.
        y_test: Their labels.
        subjects: `[N]`; validation then holds out whole subjects.
        name: A short name. Default: that of the file, or "data".
        options: How to read a table: `id`, `label`, and others of `sacm.settings.ReadOptions`.

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
        return from_padded(parse_case_file(Path(X), X_test, options), label)
    train = as_cases(X, y, label, "training")
    test = _no_cases(train) if X_test is None else as_cases(X_test, y_test, label, "test")
    arrays = case_arrays(train, test)
    if subjects is not None:
        arrays["subject_train"] = np.asarray(subjects)
        if len(arrays["subject_train"]) != len(train.values):
            raise DataError(
                f"{label}: {len(arrays['subject_train'])} subjects for {len(train.values)} cases."
            )
    return from_padded(arrays, label)


def _no_cases(like: Cases) -> Cases:
    return Cases([], np.array([], dtype=like.labels.dtype))


def parse_case_file(
    path: Path, test: Any, options: ReadOptions | Mapping[str, Any] | None = None
) -> Arrays:
    """The arrays of a `.ts` pair, of an archive, or of a table with a row a step."""
    if path.suffix not in (".npz", ".ts"):
        cases, _ = read_case_table(path, options)
        parts = split_by_class(cases.labels, TEST_SHARE)
        values = [[cases.values[k] for k in rows] for rows in parts]
        return case_arrays(*map(Cases, values, [cases.labels[rows] for rows in parts]))
    given = options.reading() if isinstance(options, ReadOptions) else options
    if given:
        raise ArgumentError(f"{', '.join(given)}: .ts and .npz files of cases need no options.")
    if path.suffix == ".npz":
        return read_archive(path, "classification")
    train = read_ts(path)
    beside = path.with_name(path.name.replace("_TRAIN.ts", "_TEST.ts"))
    if test is None and beside != path and beside.is_file():
        test = beside
    return case_arrays(train, _no_cases(train) if test is None else read_ts(Path(test)))


def read_case_table(
    path: Path, options: ReadOptions | Mapping[str, Any] | None
) -> tuple[Cases, list[str]]:
    """Cases of a table with a row a step, and their names in the column `id`."""
    from sacm.data.read import load_source, read_table

    chosen = options if isinstance(options, ReadOptions) else ReadOptions.of(options or {})
    if not chosen.id or not chosen.label:
        raise DataError(
            f"{path}: cases are read from .ts or .npz files, or from a table in which --id "
            "names the column that tells cases apart and --label that of their class."
        )
    loaded = load_source(path, chosen)
    content: Any = loaded.content
    if isinstance(content, np.ndarray) or chosen.label not in content.columns:
        raise DataError(f"{path} has no column {chosen.label!r}.")
    classes = content[chosen.label]
    ignore = (*(chosen.ignore or ()), chosen.label)
    chosen = chosen.model_copy(update={"label": None, "ignore": ignore})
    table = read_table(loaded, chosen, grid=False)
    names, values, labels = [], [], []
    for case, start, stop in table.series:
        found = classes.iloc[table.order[start:stop]].dropna().unique()
        if len(found) != 1:
            raise DataError(f"{path}: case {case!r} has {len(found)} labels: it needs one.")
        names.append(str(case))
        values.append(table.values[start:stop].T.astype(np.float32))
        labels.append(found[0])
    return Cases(values, np.asarray(labels)), names


def as_cases(X: Any, y: Any, label: str, part: str) -> Cases:
    """Arrays or lists as cases of their own lengths."""
    if y is None:
        raise DataError(f"{label}: the {part} cases have no labels y.")
    if isinstance(X, Tensor):
        X = X.detach().cpu().float().numpy()
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
    if not {"len_train", "len_test"} <= arrays.keys():  # found by the padding
        train = as_cases(arrays["X_train"], arrays["y_train"], label, "training")
        test = as_cases(arrays["X_test"], arrays["y_test"], label, "test")
        arrays = {**arrays, **case_arrays(train, test)}
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


def case_arrays(train: Cases, test: Cases) -> Arrays:
    """Pad cases of different lengths, as arrays of training and test."""
    lengths_train = np.array([case.shape[1] for case in train.values], dtype=np.int32)
    lengths_test = np.array([case.shape[1] for case in test.values], dtype=np.int32)
    longest = int(max(lengths_train.max(), lengths_test.max(initial=0)))
    channels = len(train.values[0])
    return {
        "X_train": pad(train.values, channels, longest),
        "X_test": pad(test.values, channels, longest),
        "len_train": lengths_train,
        "len_test": lengths_test,
        "y_train": train.labels,
        "y_test": test.labels,
    }


def read_ts(path: Path) -> Cases:
    """A `.ts` file."""
    check_file(path)
    return parse_ts(path.read_bytes(), str(path))


def parse_ts(content: bytes, where: str) -> Cases:
    """The content of a `.ts` file."""
    values: list[np.ndarray] = []
    labels: list[str] = []
    body = False
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not body:
            body = _ends_head(text.lower().split(), where, number)
            continue
        case, label = _parse_case(text, f"{where}: line {number}")
        if values and len(case) != len(values[0]):
            raise DataError(
                f"{where}: line {number} has {len(case)} channels where the first case has "
                f"{len(values[0])}."
            )
        values.append(case)
        labels.append(label)
    if not body:
        raise DataError(f"{where} has no @data line: it is not a .ts file, or is cut off.")
    if not values:
        raise DataError(f"{where} has no cases after @data.")
    return Cases(values, np.array(labels))


def _ends_head(words: list[str], where: str, number: int) -> bool:
    """Whether a line is `@data`; lines before it that cannot be read are refused."""
    if not words[0].startswith("@"):
        raise DataError(f"{where}: line {number} comes before @data but is no header line.")
    if words[0] == "@timestamps" and words[1:] == ["true"]:
        raise DataError(f"{where} has a timestamp at every value, which is not supported.")
    if words[0] == "@targetlabel" or words[:2] == ["@classlabel", "false"]:
        raise DataError(f"{where} has no class labels.")
    return words[0] == "@data"


def _parse_case(text: str, where: str) -> tuple[np.ndarray, str]:
    """Channels of comma-separated numbers (`?` is missing) and label, separated by colons."""
    *channels, label = text.split(":")
    if not channels:
        raise DataError(f"{where} has no class label: the file may be cut off there.")
    cells = [channel.replace("?", "nan").split(",") for channel in channels]
    lengths = set(map(len, cells))
    if len(lengths) > 1:
        raise DataError(f"{where}: channels have {min(lengths)} to {max(lengths)} values.")
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{where}: {error}.") from None
    if (np.abs(values) > LARGEST).any():
        raise DataError(f"{where} holds an infinite or too large value.")
    return values.astype(np.float32), label.strip()


def pad(cases: list[np.ndarray], channels: int, length: int) -> np.ndarray:
    """Cases `[C, L_i]` as `[N, C, length]` with NaN at the end."""
    result = np.full((len(cases), channels, length), np.nan, dtype=np.float32)
    for place, case in zip(result, cases, strict=True):
        if len(case) != channels:
            raise DataError(f"A test case has {len(case)} channels, training has {channels}.")
        place[:, : case.shape[1]] = case
    return result
