"""The layouts in which each data set is found, and how each is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sacm.data.benchmarks.catalogue import DatasetEntry
from sacm.data.benchmarks.sources import har, mitbih, sleep_edf, tables, telemetry, uea
from sacm.data.benchmarks.sources.archive import Arrays, read_archive
from sacm.data.benchmarks.sources.search import first_file

# Finders and readers take the entry of their own task, which a dictionary cannot express.
Finder = Callable[[Path, Any], Path | None]
Reader = Callable[[Path, Any], Arrays]


class FolderLayout(NamedTuple):
    """One way in which a data set may lie in a folder."""

    name: str
    find: Finder
    read: Reader


class FoundData(NamedTuple):
    """A data set that is there."""

    layout: FolderLayout
    path: Path


def find_compact(folder: Path, entry: DatasetEntry) -> Path | None:
    """The compact archive of a data set, under any of its names."""
    return first_file(folder, entry, [f"{name}.npz" for name in (entry.name, *entry.aliases)])


def read_compact(path: Path, entry: DatasetEntry) -> Arrays:
    """The arrays in it."""
    return read_archive(path, entry.task)


COMPACT = FolderLayout("compact", find_compact, read_compact)
JOINED = FolderLayout("joined arrays", telemetry.find_joined, telemetry.read_joined)
TELEMANOM = FolderLayout("telemanom files", telemetry.find_telemanom, telemetry.read_telemanom)

LAYOUTS: dict[str, tuple[FolderLayout, ...]] = {
    "table": (FolderLayout("table", tables.find_table, tables.read_series_table),),
    "mitbih": (FolderLayout("WFDB records", mitbih.find_records, mitbih.read_records),),
    "uea": (FolderLayout(".ts files", uea.find_ts, uea.read_ts_pair),),
    "har": (FolderLayout("UCI text files", har.find_har, har.read_har),),
    "sleep_edf": (FolderLayout("EDF recordings", sleep_edf.find_sleep, sleep_edf.read_sleep),),
    "smd": (FolderLayout("machine text files", telemetry.find_smd, telemetry.read_smd), JOINED),
    "telemanom": (TELEMANOM, JOINED),
    "psm": (FolderLayout("CSV files", telemetry.find_psm, telemetry.read_psm), JOINED),
}


def locate(folder: Path, entry: DatasetEntry) -> FoundData | None:
    """The data set in `folder`, in the first layout that fits."""
    for layout in (COMPACT, *LAYOUTS[entry.source]):
        path = layout.find(folder, entry)
        if path is not None:
            return FoundData(layout, path)
    return None
