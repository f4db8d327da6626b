"""What is known about a data set before it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sacm.data.datasets import AnyData
from sacm.data.splits import Splits, split_by_ratio
from sacm.types import TaskName


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: from `url` to `path` (relative, as the source lays it out).

    `checksum` is "algorithm:hex" of the file at that address, or None where it could not be
    confirmed; it is then recorded on the first download.
    """

    url: str
    path: str
    checksum: str | None = None


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """What all data sets have; `facts` are what a user should hear before trusting a number."""

    name: str
    task: TaskName
    aliases: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoaderEntry(CatalogueEntry):
    """A data set that a registered function returns."""

    loader: Callable[[], AnyData]


@dataclass(frozen=True, kw_only=True)
class DatasetEntry(CatalogueEntry):
    """A public data set in files.

    `source` names the family of file layouts, `stem` the file name without extension (if it is not
    the name).
    """

    source: str
    channels: int
    licence: str
    home: str
    files: tuple[RemoteFile, ...]
    stem: str = ""

    @property
    def file_stem(self) -> str:
        """File name without extension."""
        return self.stem or self.name

    @property
    def checksums(self) -> str:
        """Whether the checksums of the downloads are known."""
        known = sum(file.checksum is not None for file in self.files)
        if known == len(self.files):
            return "confirmed"
        return f"{known} of {len(self.files)} confirmed" if known else "recorded on first download"


@dataclass(frozen=True, kw_only=True)
class ForecastingEntry(DatasetEntry):
    """A long series: `rows` in the file, the first `rows_used` of them in the benchmark."""

    rows: int
    ratios: tuple[float, float, float]
    horizons: tuple[int, ...]
    frequency: str | None
    sampling: str
    rows_used: int = 0
    input_len: int = 96
    split_rows: tuple[int, int, int] | None = None
    columns: tuple[str, ...] = ()
    fault_code: float | None = None

    task: TaskName = "forecasting"

    @property
    def benchmark_rows(self) -> int:
        """Rows that the benchmark uses."""
        return self.rows_used or self.rows

    def splits(self, rows: int) -> Splits:
        """The benchmark's split of so many rows: its own sizes where it states them."""
        if self.split_rows is not None and sum(self.split_rows) == rows:
            train, val, _ = self.split_rows
            return Splits(range(train), range(train, train + val), range(train + val, rows))
        return split_by_ratio(rows, self.ratios)


@dataclass(frozen=True, kw_only=True)
class ClassificationEntry(DatasetEntry):
    """Labelled cases: training and test counts (None: the source fixes none), shortest, longest."""

    cases: tuple[int, int] | None
    lengths: tuple[int, int]
    classes: int

    task: TaskName = "classification"


@dataclass(frozen=True, kw_only=True)
class AnomalyEntry(DatasetEntry):
    """Telemetry: training and test rows, and the share of anomalous test rows."""

    rows: tuple[int, int]
    anomaly_rate: float

    task: TaskName = "anomaly"
