"""Sleep-EDF: 30-second epochs of one EEG channel with their sleep stages, from EDF files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.cases import Arrays
from sacm.data.load import read_bytes
from sacm.errors import DataError
from sacm_lab.datasets.public import first_folder

if TYPE_CHECKING:
    from sacm_lab.datasets.classification import ClassificationSet

HEAD_BYTES = 256
# Widths of the fields that every signal has in the header, in their order.
SIGNAL_FIELDS = {
    "label": 16,
    "transducer": 80,
    "unit": 8,
    "physical_min": 8,
    "physical_max": 8,
    "digital_min": 8,
    "digital_max": 8,
    "prefilter": 80,
    "samples": 8,
    "reserved": 32,
}
LIMITS = ("physical_min", "physical_max", "digital_min", "digital_max")
ANNOTATIONS = "EDF Annotations"
# Onset, optional duration after \x15, texts between \x14, as EDF+ defines them.
ANNOTATION = re.compile(rb"([+-]\d+(?:\.\d*)?)(?:\x15(\d+(?:\.\d*)?))?\x14([^\x00]*?)\x14\x00")
FOLDERS = ("", "sleep-cassette", "sleep-edf-database-expanded-1.0.0/sleep-cassette", "sleep-edfx")
CHANNEL = "EEG Fpz-Cz"
EPOCH_SECONDS = 30
SAMPLES = 3000
WAKE_EPOCHS = 60
SUBJECTS = range(20)
TEST_SUBJECTS = (4, 9, 14, 19)
STAGES = {
    "Sleep stage W": "W",
    "Sleep stage 1": "N1",
    "Sleep stage 2": "N2",
    "Sleep stage 3": "N3",
    "Sleep stage 4": "N3",
    "Sleep stage R": "REM",
}


def find_sleep(folder: Path, dataset: ClassificationSet) -> Path | None:
    """The folder with the recordings."""
    return first_folder(folder, dataset, FOLDERS, "SC4*-PSG.edf")


def read_sleep(folder: Path, dataset: ClassificationSet) -> Arrays:
    """All nights of subjects 0 to 19, split by subject."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray, int]]] = {"train": [], "test": []}
    for psg in sorted(folder.glob("SC4*-PSG.edf")):
        subject = int(psg.name[3:5])
        if subject in SUBJECTS:
            part = "test" if subject in TEST_SUBJECTS else "train"
            parts[part].append((*read_night(psg), subject))
    arrays: Arrays = {}
    for part, nights in parts.items():
        if not nights:
            which = "4, 9, 14, 19" if part == "test" else "other than 4, 9, 14, 19"
            raise DataError(f"{folder} has no recording of subjects {which} ({part} part).")
        X = np.concatenate([epochs for epochs, _, _ in nights])[:, None, :]  # [N, 1, 3000]
        arrays[f"X_{part}"] = X
        arrays[f"len_{part}"] = np.full(len(X), SAMPLES, dtype=np.int32)
        arrays[f"y_{part}"] = np.concatenate([stages for _, stages, _ in nights])
        subjects = [np.full(len(stages), subject) for _, stages, subject in nights]
        arrays[f"subject_{part}"] = np.concatenate(subjects).astype(np.int16)
    return arrays


def read_night(psg: Path) -> tuple[np.ndarray, np.ndarray]:
    """Epochs `[n, 3000]` and stages `[n]` of one recording."""
    scored = sorted(psg.parent.glob(f"{psg.name[:7]}*-Hypnogram.edf"))
    if not scored:
        raise DataError(f"{psg} has no hypnogram beside it ({psg.name[:7]}…-Hypnogram.edf).")
    signal, rate = read_edf(psg).signal(CHANNEL)
    if rate != SAMPLES / EPOCH_SECONDS:
        raise DataError(f"{psg}: {CHANNEL} has {rate:g} samples a second instead of 100.")
    epochs = signal[: len(signal) // SAMPLES * SAMPLES].reshape(-1, SAMPLES)
    stages = np.full(len(epochs), "", dtype="<U3")
    for onset, duration, text in read_edf(scored[0]).annotations():
        first = round(onset / EPOCH_SECONDS)
        stages[first : first + round(duration / EPOCH_SECONDS)] = STAGES.get(text, "")
    asleep = np.flatnonzero((stages != "W") & (stages != ""))
    if not len(asleep):
        raise DataError(f"{scored[0]} scores no sleep.")
    night = slice(max(0, asleep[0] - WAKE_EPOCHS), asleep[-1] + WAKE_EPOCHS + 1)
    epochs, stages = epochs[night], stages[night]
    return epochs[stages != ""], stages[stages != ""]


class Annotation(NamedTuple):
    """A text at a time, in seconds from the start of the recording."""

    onset: float
    duration: float
    text: str


@dataclass(frozen=True)
class Recording:
    """The header of a file, and its data records as 16-bit integers `[records, samples]`."""

    path: Path
    record_seconds: float
    fields: dict[str, list[str]]
    data: np.ndarray

    def columns(self, label: str) -> tuple[int, slice]:
        """Number of the signal called `label` and its place in a data record."""
        labels = self.fields["label"]
        if label not in labels:
            raise DataError(f"{self.path} has no signal {label!r}; it has {', '.join(labels)}.")
        number = labels.index(label)
        sizes = [int(size) for size in self.fields["samples"]]
        start = sum(sizes[:number])
        return number, slice(start, start + sizes[number])

    def signal(self, label: str) -> tuple[np.ndarray, float]:
        """Samples of a signal in physical units, and samples a second."""
        number, place = self.columns(label)
        try:
            low, high, bottom, top = (float(self.fields[key][number]) for key in LIMITS)
        except ValueError as error:
            raise DataError(
                f"{self.path}: the limits of signal {label!r} are unreadable."
            ) from error
        if top == bottom or self.record_seconds <= 0:
            raise DataError(f"{self.path}: signal {label!r} has no range or no duration.")
        digital = self.data[:, place].reshape(-1)
        physical = (digital - bottom) * ((high - low) / (top - bottom)) + low
        return physical.astype(np.float32), (place.stop - place.start) / self.record_seconds

    def annotations(self) -> list[Annotation]:
        """All annotations with a text."""
        _, place = self.columns(ANNOTATIONS)
        content = np.ascontiguousarray(self.data[:, place]).tobytes()
        return [
            Annotation(float(onset), float(duration or 0), text.decode("utf-8", errors="replace"))
            for onset, duration, texts in ANNOTATION.findall(content)
            for text in texts.split(b"\x14")
            if text
        ]


def read_edf(path: Path) -> Recording:
    """An EDF or EDF+ file."""
    content = read_bytes(path)
    try:
        count = int(content[252:256])
        records, seconds = int(content[236:244]), float(content[244:252])
        fields = signal_fields(content, count)
        size = sum(int(samples) for samples in fields["samples"])
    except ValueError as error:
        raise DataError(f"{path} is not an EDF file.") from error
    start = HEAD_BYTES * (count + 1)
    if len(content) < start + 2 * records * size:
        raise DataError(f"{path} is cut off: its header promises {records} data records.")
    data = np.frombuffer(content, dtype="<i2", count=records * size, offset=start)
    return Recording(path, seconds, fields, data.reshape(records, size))


def signal_fields(content: bytes, count: int) -> dict[str, list[str]]:
    """The header fields of all signals."""
    position = HEAD_BYTES
    fields = {}
    for name, width in SIGNAL_FIELDS.items():
        block = content[position : position + width * count]
        fields[name] = [
            block[i * width : (i + 1) * width].decode("latin-1").strip() for i in range(count)
        ]
        position += width * count
    return fields
