"""SMD, MSL, SMAP and PSM in the layouts of their sources and of Time-Series-Library."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.cases import Arrays
from sacm.data.datasets import AnomalyData, TelemetrySegment
from sacm.data.load import read_bytes
from sacm.errors import DataError
from sacm.types import TaskName
from sacm_lab.datasets.public import (
    Border,
    FolderLayout,
    PublicDataset,
    RemoteFile,
    borders,
    checksums,
    difference_note,
    first_file,
    first_folder,
    number_matrix,
)

SMD_FILES = "https://raw.githubusercontent.com/NetManAIOps/OmniAnomaly/master/"
TELEMANOM_HOME = "https://github.com/khundman/telemanom"
CHANNEL_FILES = "https://raw.githubusercontent.com/imperial-qore/TranAD/main/data/"
LABEL_FILE = "https://raw.githubusercontent.com/khundman/telemanom/master/labeled_anomalies.csv"
PSM_FILES = "https://raw.githubusercontent.com/eBay/RANSynCoders/main/data/"
PSM_LABELS = "sha256:e5b6b0c716a9b3d52e3a1b06761527811f75a218790c37b8a5e806741aeb0676"
SEGMENT_KEYS = ("segment", "machine", "channel")


@dataclass(frozen=True, kw_only=True)
class AnomalySet(PublicDataset):
    """Telemetry: training and test rows, and the share of anomalous test rows."""

    rows: tuple[int, int]
    anomaly_rate: float

    task: TaskName = "anomaly"

    def sizes(self) -> dict[str, Any]:
        """Rows, channels and the share of anomalies."""
        return {
            "rows": list(self.rows),
            "channels": self.channels,
            "anomaly_rate": self.anomaly_rate,
        }

    def shape(self) -> str:
        """Training and test rows x channels."""
        return f"{self.rows[0]:,}/{self.rows[1]:,} x {self.channels}"

    def build_as_published(self, arrays: Arrays) -> AnomalyData:
        """Rows, labels and borders."""
        train = np.ascontiguousarray(arrays["train"], dtype=np.float32)
        test = np.ascontiguousarray(arrays["test"], dtype=np.float32)
        segments = read_segments(arrays)
        notes = [
            *self.facts,
            difference_note("training rows", len(train), self.rows[0]),
            difference_note("test rows", len(test), self.rows[1]),
        ]
        absent = arrays.get("missing_machines", ())
        if len(absent):
            notes.append(f"Machines not in this copy: {', '.join(map(str, absent))}.")
        if self.name != "PSM" and not segments:
            notes.append(
                "The borders between machines or channel files are not known in this copy, so "
                "windows cross them."
            )
        return AnomalyData(
            name=self.name,
            train=train,
            test=test,
            labels=arrays["labels"].astype(np.uint8),
            columns=tuple(str(position) for position in range(train.shape[1])),
            segments=segments,
            notes=tuple(note for note in notes if note),
        )


def read_segments(arrays: Arrays) -> tuple[TelemetrySegment, ...]:
    """Runs of equal segment numbers as row ranges."""
    key = next((key for key in SEGMENT_KEYS if f"{key}_names" in arrays), None)
    if key is None:
        return ()
    train, test = rows_by_number(arrays[f"{key}_train"]), rows_by_number(arrays[f"{key}_test"])
    nothing = range(0)
    return tuple(
        TelemetrySegment(str(label), train.get(number, nothing), test.get(number, nothing))
        for number, label in enumerate(arrays[f"{key}_names"])
    )


def rows_by_number(numbers: np.ndarray) -> dict[int, range]:
    """The rows of each number; every number must form a single run."""
    borders = np.flatnonzero(np.diff(numbers.astype(np.int64))) + 1
    starts, stops = np.append(0, borders), np.append(borders, len(numbers))
    rows: dict[int, range] = {}
    for start, stop in zip(starts, stops, strict=True):
        number = int(numbers[start])
        if number in rows:
            raise DataError(f"Segment {number} is in two places (again at row {start + 1}).")
        rows[number] = range(int(start), int(stop))
    return rows


def find_smd(folder: Path, dataset: AnomalySet) -> Path | None:
    """The folder with `train/machine-1-1.txt` and its like."""
    return first_folder(folder, dataset, ("ServerMachineDataset", ""), "train/machine-*.txt")


def read_smd(folder: Path, dataset: AnomalySet) -> Arrays:
    """All machines that are there, in the order of their numbers."""
    found = {path.stem for path in (folder / "train").glob("machine-*.txt")}
    known = [border.name for border in borders(dataset.name)]
    names = [name for name in known if name in found] + sorted(found - set(known))
    train, test, labels = (
        [read_plain(folder / part / f"{name}.txt") for name in names]
        for part in ("train", "test", "test_label")
    )
    return join_segments(names, train, test, [column[:, 0] for column in labels], str(folder))


def read_frame(path: Path) -> Any:
    """A table as a frame."""
    from sacm.data.read import load_source

    return load_source(path).content


def read_plain(path: Path) -> np.ndarray:
    """Comma-separated numbers without a header."""
    return number_matrix(read_frame(path), str(path))


def find_telemanom(folder: Path, dataset: AnomalySet) -> Path | None:
    """The folder with `labeled_anomalies.csv`, `train` and `test`."""
    places = ("SMAP_MSL", "", "telemanom", "data")
    return first_folder(folder, dataset, places, "labeled_anomalies.csv")


def read_telemanom(folder: Path, dataset: AnomalySet) -> Arrays:
    """The channels of one spacecraft in alphabetical order, without the ambiguous P-2."""
    path = folder / "labeled_anomalies.csv"
    table = read_frame(path)
    if not {"chan_id", "spacecraft", "anomaly_sequences"} <= set(table.columns):
        raise DataError(f"{path} lacks chan_id, spacecraft or anomaly_sequences.")
    rows = table[(table["spacecraft"] == dataset.name) & (table["chan_id"] != "P-2")]
    rows = rows.sort_values("chan_id")
    names = [str(name) for name in rows["chan_id"]]
    if not names:
        raise DataError(f"{path} lists no channel of {dataset.name}.")
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
    content = io.BytesIO(read_bytes(path))
    try:
        array = np.load(content, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error
    if array.dtype.kind not in "fiub" or array.ndim > 2:
        raise DataError(f"{path}: the array must hold numbers, [T] or [T, C].")
    return np.ascontiguousarray(array[:, None] if array.ndim == 1 else array, dtype=np.float32)


def find_psm(folder: Path, dataset: AnomalySet) -> Path | None:
    """The folder with `train.csv`, `test.csv` and `test_label.csv`."""
    return first_folder(folder, dataset, ("PSM", "", "RANSynCoders/data"), "test_label.csv")


def read_psm(folder: Path, dataset: AnomalySet) -> Arrays:
    """Values with 0 for what is missing; the first column of each file is the timestamp."""
    parts = {}
    for part in ("train", "test", "test_label"):
        path = folder / f"{part}.csv"
        parts[part] = number_matrix(read_frame(path).iloc[:, 1:], str(path))
    train, test = (np.nan_to_num(parts[part], nan=0.0) for part in ("train", "test"))
    return join_segments([dataset.name], [train], [test], [parts["test_label"][:, 0]], str(folder))


def find_joined(folder: Path, dataset: AnomalySet) -> Path | None:
    """The training array of the three that Time-Series-Library keeps of a set."""
    name = f"{dataset.name}_train.npy"
    return first_file(folder, dataset, (name, f"{dataset.name}/{name}"))


def read_joined(path: Path, dataset: AnomalySet) -> Arrays:
    """Arrays without borders; those are put back where sizes and labels prove the order."""
    train, test = read_npy(path), read_npy(path.with_name(f"{dataset.name}_test.npy"))
    marked = read_npy(path.with_name(f"{dataset.name}_test_label.npy"))
    labels = np.asarray(marked.any(axis=1), dtype=np.uint8)
    arrays: Arrays = {"train": train, "test": test, "labels": labels}
    known = borders(dataset.name)
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


JOINED = FolderLayout("joined arrays", find_joined, read_joined)
SMD_LAYOUTS = (FolderLayout("machine text files", find_smd, read_smd), JOINED)
TELEMANOM_LAYOUTS = (FolderLayout("telemanom files", find_telemanom, read_telemanom), JOINED)
PSM_LAYOUTS = (FolderLayout("CSV files", find_psm, read_psm), JOINED)


def smd_files() -> tuple[RemoteFile, ...]:
    """Three text files for each of the 28 machines."""
    paths = (
        f"ServerMachineDataset/{part}/{machine.name}.txt"
        for machine in borders("SMD")
        for part in ("train", "test", "test_label")
    )
    return tuple(RemoteFile(SMD_FILES + path, path, checksums()[path]) for path in paths)


def telemanom_files(name: str) -> tuple[RemoteFile, ...]:
    """Two arrays for each channel, and the list of anomalies."""
    paths = [
        f"SMAP_MSL/{part}/{channel.name}.npy"
        for channel in borders(name)
        for part in ("train", "test")
    ]
    arrays = (RemoteFile(CHANNEL_FILES + path, path) for path in paths)
    return (*arrays, RemoteFile(LABEL_FILE, "SMAP_MSL/labeled_anomalies.csv"))


ANOMALY_SETS = (
    AnomalySet(
        name="SMD",
        layouts=SMD_LAYOUTS,
        channels=38,
        licence="MIT",
        home="https://github.com/NetManAIOps/OmniAnomaly",
        files=smd_files(),
        rows=(708_405, 708_420),
        anomaly_rate=0.0416,
        facts=(
            "28 machines end to end: windows never cross a machine border.",
            "Already scaled to [0, 1] machine by machine by its authors.",
        ),
    ),
    AnomalySet(
        name="MSL",
        layouts=TELEMANOM_LAYOUTS,
        channels=55,
        licence="BSD-style (telemanom, Caltech)",
        home=TELEMANOM_HOME,
        files=telemanom_files("MSL"),
        rows=(58_317, 73_729),
        anomaly_rate=0.1053,
        facts=(
            "27 channel files end to end: windows never cross a channel border.",
            "54 of the 55 columns are 0/1 commands; column 0 reaches 258 in the test part, far "
            "outside its training range.",
            "Intervals are labelled with both ends included: 10.53 % anomalous (elsewhere 10.72 % "
            "is quoted).",
        ),
    ),
    AnomalySet(
        name="SMAP",
        layouts=TELEMANOM_LAYOUTS,
        channels=25,
        licence="BSD-style (telemanom, Caltech)",
        home=TELEMANOM_HOME,
        files=telemanom_files("SMAP"),
        rows=(135_183, 427_617),
        anomaly_rate=0.1279,
        facts=(
            "53 channel files end to end: windows never cross a channel border.",
            "Channel P-2, labelled twice and differently, is left out, as in the usual row counts.",
            "Intervals are labelled with both ends included: 12.79 % anomalous (elsewhere 13.13 % "
            "is quoted).",
        ),
    ),
    AnomalySet(
        name="PSM",
        layouts=PSM_LAYOUTS,
        channels=25,
        licence="CC BY 4.0",
        home="https://github.com/eBay/RANSynCoders",
        files=(
            RemoteFile(PSM_FILES + "train.csv", "PSM/train.csv"),
            RemoteFile(PSM_FILES + "test.csv", "PSM/test.csv"),
            RemoteFile(PSM_FILES + "test_label.csv", "PSM/test_label.csv", PSM_LABELS),
        ),
        rows=(132_481, 87_841),
        anomaly_rate=0.2776,
        facts=("Missing values are set to 0 and the timestamp column is dropped.",),
    ),
)
