"""SMD, MSL, SMAP and PSM in the layouts of their sources and of Time-Series-Library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sacm.data.benchmarks.catalogue import AnomalyEntry
from sacm.data.benchmarks.catalogue.checksums import Border, borders
from sacm.data.benchmarks.sources.archive import Arrays
from sacm.data.benchmarks.sources.search import first_file, first_folder
from sacm.data.tables.columns import from_array, matrix
from sacm.data.tables.csv_file import check_csv_file, read_table
from sacm.errors import DataError


def find_smd(folder: Path, entry: AnomalyEntry) -> Path | None:
    """The folder with `train/machine-1-1.txt` and its like."""
    return first_folder(folder, entry, ("ServerMachineDataset", ""), "train/machine-*.txt")


def read_smd(folder: Path, entry: AnomalyEntry) -> Arrays:
    """All machines that are there, in the order of their numbers."""
    found = {path.stem for path in (folder / "train").glob("machine-*.txt")}
    known = [border.name for border in borders(entry.name)]
    names = [name for name in known if name in found] + sorted(found - set(known))
    train, test, labels = (
        [read_plain(folder / part / f"{name}.txt") for name in names]
        for part in ("train", "test", "test_label")
    )
    return join_segments(names, train, test, [column[:, 0] for column in labels], str(folder))


def read_plain(path: Path) -> np.ndarray:
    """Comma-separated numbers without a header."""
    return matrix(read_table(path), str(path))


def find_telemanom(folder: Path, entry: AnomalyEntry) -> Path | None:
    """The folder with `labeled_anomalies.csv`, `train` and `test`."""
    places = ("SMAP_MSL", "", "telemanom", "data")
    return first_folder(folder, entry, places, "labeled_anomalies.csv")


def read_telemanom(folder: Path, entry: AnomalyEntry) -> Arrays:
    """The channels of one spacecraft in alphabetical order, without the ambiguous P-2."""
    path = folder / "labeled_anomalies.csv"
    table = read_table(path)
    if not {"chan_id", "spacecraft", "anomaly_sequences"} <= set(table.columns):
        raise DataError(f"{path} lacks chan_id, spacecraft or anomaly_sequences.")
    rows = table[(table["spacecraft"] == entry.name) & (table["chan_id"] != "P-2")]
    rows = rows.sort_values("chan_id")
    names = [str(name) for name in rows["chan_id"]]
    if not names:
        raise DataError(f"{path} lists no channel of {entry.name}.")
    train, test = (
        [read_npy(folder / part / f"{name}.npy") for name in names] for part in ("train", "test")
    )
    labels = []
    for intervals, values in zip(rows["anomaly_sequences"], test, strict=True):
        marked = np.zeros(len(values), dtype=np.uint8)
        for start, stop in json.loads(intervals):
            marked[start : stop + 1] = 1
        labels.append(marked)
    return join_segments(names, train, test, labels, str(folder))


def read_npy(path: Path) -> np.ndarray:
    """A plain array of numbers."""
    check_csv_file(path)
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error
    return from_array(array, str(path))


def find_psm(folder: Path, entry: AnomalyEntry) -> Path | None:
    """The folder with `train.csv`, `test.csv` and `test_label.csv`."""
    return first_folder(folder, entry, ("PSM", "", "RANSynCoders/data"), "test_label.csv")


def read_psm(folder: Path, entry: AnomalyEntry) -> Arrays:
    """Values with 0 for what is missing; the first column of each file is the timestamp."""
    parts = {}
    for part in ("train", "test", "test_label"):
        path = folder / f"{part}.csv"
        table = read_table(path)
        parts[part] = matrix(table.iloc[:, 1:], str(path))
    train, test = (np.nan_to_num(parts[part], nan=0.0) for part in ("train", "test"))
    return join_segments([entry.name], [train], [test], [parts["test_label"][:, 0]], str(folder))


def find_joined(folder: Path, entry: AnomalyEntry) -> Path | None:
    """The training array of the three that Time-Series-Library keeps of a set."""
    name = f"{entry.name}_train.npy"
    return first_file(folder, entry, (name, f"{entry.name}/{name}"))


def read_joined(path: Path, entry: AnomalyEntry) -> Arrays:
    """Arrays without borders; those are put back where sizes and labels prove the order."""
    train, test = read_npy(path), read_npy(path.with_name(f"{entry.name}_test.npy"))
    marked = read_npy(path.with_name(f"{entry.name}_test_label.npy"))
    labels = np.asarray(marked.any(axis=1), dtype=np.uint8)
    arrays: Arrays = {"train": train, "test": test, "labels": labels}
    known = borders(entry.name)
    for order in (known, sorted(known, key=lambda border: border.name)):
        if proves(order, train, test, labels):
            arrays |= segment_numbers(
                [border.name for border in order],
                [border.train for border in order],
                [border.test for border in order],
            )
            break
    return arrays


def proves(
    order: Sequence[Border], train: np.ndarray, test: np.ndarray, labels: np.ndarray
) -> bool:
    """Whether rows, and anomalies segment by segment, are as they would be in this order."""
    if not order or sum(border.train for border in order) != len(train):
        return False
    ends = np.cumsum([border.test for border in order])
    if ends[-1] != len(test) or len(labels) != len(test):
        return False
    counts = np.add.reduceat(labels.astype(np.int64), np.append(0, ends[:-1]))
    return all(
        border.anomalous in (None, int(count)) for border, count in zip(order, counts, strict=True)
    )


def join_segments(
    names: list[str],
    train: list[np.ndarray],
    test: list[np.ndarray],
    labels: list[np.ndarray],
    where: str,
) -> Arrays:
    """Segments end to end, with their numbers."""
    for name, values, marked in zip(names, test, labels, strict=True):
        if len(values) != len(marked):
            raise DataError(f"{where}: {name} has {len(values)} test rows, {len(marked)} labels.")
        if values.shape[1] != train[0].shape[1]:
            raise DataError(f"{where}: {name} has {values.shape[1]} channels, unlike {names[0]}.")
    return {
        "train": np.concatenate(train),
        "test": np.concatenate(test),
        "labels": (np.concatenate(labels) > 0).astype(np.uint8),
        **segment_numbers(names, [len(part) for part in train], [len(part) for part in test]),
    }


def segment_numbers(names: list[str], train: list[int], test: list[int]) -> Arrays:
    """The segment of every row."""
    numbers = np.arange(len(names), dtype=np.int16)
    return {
        "segment_names": np.array(names),
        "segment_train": np.repeat(numbers, train),
        "segment_test": np.repeat(numbers, test),
    }
