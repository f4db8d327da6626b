"""European Data Format: one signal of a recording, and the annotations of an EDF+ file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sacm.data.tables.csv_file import check_csv_file
from sacm.errors import DataError

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
    check_csv_file(path)
    content = path.read_bytes()
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
