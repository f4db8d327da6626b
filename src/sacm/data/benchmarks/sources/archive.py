"""The intermediate form of every data set: a few named arrays, as in the compact `.npz` files.

Forecasting: `values` [T, C], `columns`, and `timestamps` if there are any. Classification:
`X_train`, `X_test` [N, C, L] with NaN after the end of a case, `y_train`, `y_test`, and if known
`len_train`, `len_test`, `subject_train`, `subject_test`. Anomaly: `train`, `test` [T, C], `labels`,
and segment numbers `segment_train`, `segment_test` with `segment_names` (also under `machine_` or
`channel_`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sacm.data.benchmarks.cache import writing
from sacm.data.datasets import DATA_TYPES
from sacm.data.tables.csv_file import check_csv_file
from sacm.errors import DataError
from sacm.types import TaskName

Arrays = dict[str, np.ndarray]


def read_archive(path: Path, task: TaskName) -> Arrays:
    """The arrays in a compact `.npz` file."""
    check_csv_file(path)
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
    """Write a compact `.npz` file, whole or not at all."""
    with writing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
