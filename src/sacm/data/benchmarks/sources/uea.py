"""The UEA archive: a training and a test file in `.ts` format, loose or in a zip file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from sacm.data.benchmarks.catalogue import ClassificationEntry
from sacm.data.benchmarks.sources.archive import Arrays
from sacm.data.benchmarks.sources.search import first_file
from sacm.data.own.ts_format import Cases, pad, parse_ts, read_ts
from sacm.errors import DataError


def find_ts(folder: Path, entry: ClassificationEntry) -> Path | None:
    """The training file, or the zip file that holds both."""
    name = entry.name
    loose = f"{name}_TRAIN.ts"
    nested = f"Multivariate_ts/{name}/{loose}"
    return first_file(folder, entry, (loose, f"{name}/{loose}", nested, f"{name}.zip"))


def read_ts_pair(path: Path, entry: ClassificationEntry) -> Arrays:
    """Both files."""
    if path.suffix == ".zip":
        train, test = read_zip(path, entry.name)
    else:
        other = path.with_name(f"{entry.name}_TEST.ts")
        train, test = read_ts(path), read_ts(other)
    return case_arrays(train, test)


def read_zip(path: Path, name: str) -> tuple[Cases, Cases]:
    """Both files, out of the zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(member).name: member for member in archive.namelist()}
            cases = []
            for part in ("TRAIN", "TEST"):
                file = f"{name}_{part}.ts"
                if file not in members:
                    raise DataError(f"{path} does not contain {file}.")
                cases.append(parse_ts(archive.read(members[file]), f"{path}, {file}"))
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is a damaged zip file: remove it and fetch it again.") from error
    return cases[0], cases[1]


def case_arrays(train: Cases, test: Cases) -> Arrays:
    """Padded arrays of both parts."""
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
