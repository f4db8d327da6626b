"""Looking for files in a folder that a user already has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sacm.data.benchmarks.cache import is_folder
from sacm.data.benchmarks.catalogue import DatasetEntry

# A folder may be the collection itself, or hold it as Time-Series-Library and others do.
COLLECTIONS = ("", "dataset", "datasets", "all_datasets", "data")


def roots(folder: Path, entry: DatasetEntry) -> Iterator[Path]:
    """The folders inside `folder` that may hold the data set."""
    own = ("", entry.task, entry.name, entry.file_stem)
    seen = set()
    for collection in COLLECTIONS:
        for name in own:
            root = folder / collection / name
            if root not in seen and is_folder(root):
                seen.add(root)
                yield root


def first_file(folder: Path, entry: DatasetEntry, candidates: Iterable[str]) -> Path | None:
    """The first of `candidates` (relative paths) that exists."""
    for root in roots(folder, entry):
        for candidate in candidates:
            path = root / candidate
            if path.is_file():
                return path
    return None


def first_folder(
    folder: Path, entry: DatasetEntry, candidates: Iterable[str], holding: str
) -> Path | None:
    """The first of the folders `candidates` that contains a file matching `holding`."""
    for root in roots(folder, entry):
        for candidate in candidates:
            place = root / candidate
            if is_folder(place) and next(place.glob(holding), None) is not None:
                return place
    return None
