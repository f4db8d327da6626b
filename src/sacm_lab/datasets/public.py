"""What a public data set is: its files, the layouts they are found in, and how it is loaded."""

from __future__ import annotations

import csv
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sacm.data.cases import Arrays, read_archive
from sacm.data.datasets import AnyData
from sacm.data.load import Dataset, Ratios
from sacm.errors import ArgumentError, DataError
from sacm_lab.datasets import ALIASES
from sacm_lab.datasets.download import cache_folder, data_folder, fetch, is_folder

# A folder may be the collection itself, or hold it as Time-Series-Library and others do.
COLLECTIONS = ("", "dataset", "datasets", "all_datasets", "data")
# Data that are shipped with the package: ILI, a work of the US government (see its README).
BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: from `url` to `path` (relative, as the source lays it out).

    `checksum` is "algorithm:hex" of the file at that address, or None where it could not be
    confirmed; it is then recorded on the first download.
    """

    url: str
    path: str
    checksum: str | None = None


class FolderLayout(NamedTuple):
    """One way in which a data set may lie in a folder; both functions take the data set too."""

    name: str
    find: Callable[[Path, Any], Path | None]
    read: Callable[[Path, Any], Arrays]


class Location(NamedTuple):
    """Where a data set was found: SACM_DATA, cache, package or a folder; its layout and path."""

    place: str
    layout: FolderLayout
    path: Path


@dataclass(frozen=True, kw_only=True)
class PublicDataset(Dataset):
    """A public data set in files; `stem` is the file name without extension, if not the name."""

    channels: int
    licence: str
    home: str
    files: tuple[RemoteFile, ...]
    layouts: tuple[FolderLayout, ...]
    stem: str = ""

    @property
    def file_stem(self) -> str:
        """File name without extension."""
        return self.stem or self.name

    @property
    def checksums(self) -> str:
        """Whether the checksums of the downloads are known."""
        count = sum(file.checksum is not None for file in self.files)
        if count == len(self.files):
            return "confirmed"
        return f"{count} of {len(self.files)} confirmed" if count else "recorded on first download"

    @property
    def present(self) -> bool:
        """Whether it is on this machine."""
        return self.locate() is not None

    def locate(self, folder: str | Path | None = None) -> Location | None:
        """Find the data set in `folder`, or in SACM_DATA, the cache and the package itself."""
        places: list[tuple[str, Path | None]]
        if folder is not None:
            if not is_folder(Path(folder)):
                raise DataError(f"{folder} is not a folder.")
            places = [(str(folder), Path(folder))]
        else:
            places = [
                ("SACM_DATA", data_folder()),
                ("cache", cache_folder()),
                ("package", BUNDLED),
            ]
        for place, root in places:
            if root is None or not is_folder(root):
                continue
            for layout in (COMPACT, *self.layouts):
                path = layout.find(root, self)
                if path is not None:
                    return Location(place, layout, path)
        return None

    def load(
        self,
        *,
        folder: str | Path | None = None,
        download: bool = True,
        progress: bool = True,
        ratios: Ratios | None = None,
    ) -> AnyData:
        """Load the data from this machine, or download them; arguments of `sacm.data.load`."""
        location = self.locate(folder)
        if location is not None:
            arrays = location.layout.read(location.path, self)
        elif folder is not None or not download:
            where = folder or data_folder() or cache_folder()
            raise DataError(f"{self.name} is not in {where}: it should hold {self.files[0].path}.")
        else:
            arrays = read_compact(fetch(self, progress=progress), self)
        return self.build(arrays, ratios=ratios)

    def build(self, arrays: Arrays, *, ratios: Ratios | None) -> AnyData:
        """Make the data set of its arrays, as the benchmark cuts and splits it."""
        if ratios is not None:
            raise ArgumentError(f"{self.name} is no series: it has a split of its own.")
        return self.build_as_published(arrays)

    @abstractmethod
    def build_as_published(self, arrays: Arrays) -> AnyData:
        """Make the data set as the benchmark has it."""

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """Give what is particular to the task: rows or cases, lengths, classes."""

    @abstractmethod
    def shape(self) -> str:
        """Give the sizes in a few characters."""


def find_compact(folder: Path, dataset: PublicDataset) -> Path | None:
    """The compact archive of a data set, under any of its names."""
    names = (dataset.name, *ALIASES.get(dataset.name, ()))
    return first_file(folder, dataset, [f"{name}.npz" for name in names])


def read_compact(path: Path, dataset: PublicDataset) -> Arrays:
    """The arrays in it."""
    return read_archive(path, dataset.task)


COMPACT = FolderLayout("compact", find_compact, read_compact)


def roots(folder: Path, dataset: PublicDataset) -> Iterator[Path]:
    """The folders inside `folder` that may hold the data set."""
    seen = set()
    for collection in COLLECTIONS:
        for name in ("", dataset.task, dataset.name, dataset.file_stem):
            root = folder / collection / name
            if root not in seen and is_folder(root):
                seen.add(root)
                yield root


def first_file(folder: Path, dataset: PublicDataset, candidates: Iterable[str]) -> Path | None:
    """The first of `candidates` (relative paths) that exists."""
    for root in roots(folder, dataset):
        for candidate in candidates:
            if (root / candidate).is_file():
                return root / candidate
    return None


def first_folder(
    folder: Path, dataset: PublicDataset, candidates: Iterable[str], holding: str
) -> Path | None:
    """The first of the folders `candidates` that contains a file matching `holding`."""
    for root in roots(folder, dataset):
        for candidate in candidates:
            inside = root / candidate
            if is_folder(inside) and next(inside.glob(holding), None) is not None:
                return inside
    return None


def difference_note(what: str, count: int, expected: int) -> str | None:
    """A note on a copy that differs from the published data set."""
    if count == expected:
        return None
    return f"This copy has {count:,} {what}, the published data set {expected:,}."


class Border(NamedTuple):
    """Size of one machine or channel file; `anomalous` is None where it is not known."""

    name: str
    train: int
    test: int
    anomalous: int | None


@cache
def checksums() -> dict[str, str]:
    """Confirmed checksums by the path of the file in its source."""
    lines = files(__package__).joinpath("checksums.txt").read_text().splitlines()
    return {path: checksum for checksum, path in (line.split() for line in lines)}


@cache
def borders(name: str) -> tuple[Border, ...]:
    """The segments of a telemetry data set, in their usual order."""
    lines = files(__package__).joinpath("borders.csv").read_text().splitlines()
    return tuple(
        Border(
            row["segment"],
            int(row["train"]),
            int(row["test"]),
            int(row["anomalous"]) if row["anomalous"] else None,
        )
        for row in csv.DictReader(lines)
        if row["dataset"] == name
    )


def number_matrix(table: Any, where: str) -> np.ndarray:
    """All columns of a frame as float32 `[T, C]`."""
    from sacm.data.columns import Reading, read_numbers

    columns = []
    for name in table.columns:
        values = read_numbers(table[name], Reading(where))
        if values is None:
            raise DataError(f"{where}: column {name!r} is not numeric.")
        columns.append(values.astype(np.float32))
    return np.stack(columns, axis=1)
