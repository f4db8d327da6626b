"""Data sets as a few named arrays in one `.npz` file.

Forecasting: `values` [T, C], `columns`, and `timestamps` if there are any. Classification:
`X_train`, `X_test` [N, C, L] with NaN after the end of a case, `y_train`, `y_test`, and if known
`len_train`, `len_test`, `subject_train`, `subject_test`. Anomaly: `train`, `test` [T, C], `labels`,
and segment numbers `segment_train`, `segment_test` with `segment_names` (also under `machine_` or
`channel_`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sacm.data.datasets import DATA_TYPES
from sacm.errors import DataError
from sacm.files import write_atomically
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
    """Read the arrays of an `.npz` file.

    Raises:
        DataError: If it is damaged or lacks an array that the task needs.
    """
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


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write an `.npz` file, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    write_atomically(path, write)
