"""HAR: the inertial signals of "Human Activity Recognition Using Smartphones" (UCI)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.cases import Arrays
from sacm.errors import DataError
from sacm_lab.datasets.public import first_file

if TYPE_CHECKING:
    from sacm_lab.datasets.classification import ClassificationSet

SIGNALS = tuple(
    f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"
)
FOLDER = "UCI HAR Dataset"
MARKER = "train/Inertial Signals/body_acc_x_train.txt"
ZIP_NAMES = (f"{FOLDER}.zip", "human+activity+recognition+using+smartphones.zip")


def find_har(folder: Path, dataset: ClassificationSet) -> Path | None:
    """The unpacked folder, or the zip file."""
    marker = first_file(folder, dataset, (MARKER, f"{FOLDER}/{MARKER}"))
    if marker is not None:
        return marker.parents[2]
    return first_file(folder, dataset, ZIP_NAMES)


def read_har(path: Path, dataset: ClassificationSet) -> Arrays:
    """Windows, activities and subjects of both parts."""
    try:
        top = open_zip(path.read_bytes(), str(path)) if path.is_file() else path
        activities = dict(line.split() for line in read_lines(top / "activity_labels.txt"))
        arrays: Arrays = {}
        for part in ("train", "test"):
            arrays |= read_har_part(top / part, part, activities)
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is a damaged zip file: remove it and fetch it again.") from error
    return arrays


def open_zip(content: bytes, where: str) -> zipfile.Path:
    """The data folder inside the zip file; UCI packs it twice."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    names = archive.namelist()
    for name in names:
        if name.endswith(f"{FOLDER}.zip"):
            return open_zip(archive.read(name), where)
    marker = next((name for name in names if name.endswith(MARKER)), None)
    if marker is None:
        raise DataError(f"{where} does not contain {MARKER}.")
    return zipfile.Path(archive, marker.removesuffix(MARKER))


def read_har_part(folder: Path | zipfile.Path, part: str, activities: dict[str, str]) -> Arrays:
    """One part: signals `[N, 9, 128]`, activity names, subject numbers."""
    signals = [
        read_numbers(folder / "Inertial Signals" / f"{signal}_{part}.txt") for signal in SIGNALS
    ]
    X = np.stack(signals, axis=1).astype(np.float32)
    codes = read_lines(folder / f"y_{part}.txt")
    subjects = read_lines(folder / f"subject_{part}.txt")
    if not len(X) == len(codes) == len(subjects):
        raise DataError(
            f"{folder}: {len(X)} windows, {len(codes)} labels and {len(subjects)} subjects do not "
            "belong together."
        )
    return {
        f"X_{part}": X,
        f"len_{part}": np.full(len(X), X.shape[2], dtype=np.int32),
        f"y_{part}": np.array([activities.get(code, code) for code in codes]),
        f"subject_{part}": np.array(subjects, dtype=np.int16),
    }


def read_lines(path: Path | zipfile.Path) -> list[str]:
    """The non-blank lines of a text file."""
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_numbers(path: Path | zipfile.Path) -> np.ndarray:
    """A text file of blank-separated numbers, a row for each line."""
    lines = read_lines(path)
    try:
        return np.loadtxt(lines, dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise DataError(
            f"{path}: lines differ in length or hold text: it may be cut off."
        ) from error
