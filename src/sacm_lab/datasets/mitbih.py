"""ECG: records of the MIT-BIH Arrhythmia Database in WFDB format 212."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.cases import Arrays
from sacm.data.scaling import fill_gaps
from sacm.errors import DataError
from sacm_lab.datasets.public import first_folder

if TYPE_CHECKING:
    from sacm_lab.datasets.forecasting import ForecastingSet

RECORDS = range(100, 106)
FOLDERS = ("", "mitdb", "mit-bih-arrhythmia-database-1.0.0", "mitdb/1.0.0")
DECIMATION = 10
INVALID = -2048


class Lead(NamedTuple):
    """How one signal of a record is written."""

    name: str
    gain: float
    baseline: int


def find_records(folder: Path, dataset: ForecastingSet) -> Path | None:
    """The folder with the records."""
    return first_folder(folder, dataset, FOLDERS, f"{RECORDS[0]}.dat")


def read_records(folder: Path, dataset: ForecastingSet) -> Arrays:
    """Both leads of all records side by side, 36 Hz, in millivolts."""
    from scipy.signal import resample_poly

    columns, names = [], []
    for record in RECORDS:
        leads, signals = read_leads(folder / str(record))
        for lead, signal in zip(leads, signals.T, strict=True):
            signal = fill_gaps(signal[:, None])[:, 0]
            columns.append(resample_poly(signal, 1, DECIMATION))
            names.append(f"{record}_{lead.name}")
    rows = min(dataset.rows, *(len(column) for column in columns))
    values = np.stack([column[:rows] for column in columns], axis=1).astype(np.float32)
    return {"values": values, "columns": np.array(names)}


def read_leads(path: Path) -> tuple[list[Lead], np.ndarray]:
    """The leads of one record and its samples `[T, leads]` in millivolts."""
    header, samples = path.with_suffix(".hea"), path.with_suffix(".dat")
    for file in (header, samples):
        if not file.is_file():
            raise DataError(f"There is no file {file}.")
    leads = read_header(header)
    digital = decode_212(samples.read_bytes(), len(leads), samples)
    physical = digital.astype(np.float64)
    physical[digital == INVALID] = np.nan
    gains = np.array([lead.gain for lead in leads])
    return leads, (physical - [lead.baseline for lead in leads]) / gains


def read_header(path: Path) -> list[Lead]:
    """The signal lines of a header file."""
    lines = [line.split() for line in path.read_text().splitlines() if line[:1] not in ("", "#")]
    try:
        count = int(lines[0][1])
        signals = lines[1 : count + 1]
        # file, format, gain, resolution, zero, first value, checksum, block size, description
        return [Lead(" ".join(f[8:]), float(f[2].split("/")[0]), int(f[4])) for f in signals]
    except (IndexError, ValueError) as error:
        raise DataError(f"{path} is not a WFDB header.") from error


def decode_212(content: bytes, leads: int, path: Path) -> np.ndarray:
    """Pairs of 12-bit samples in three bytes each, as integers `[T, leads]`."""
    packed = np.frombuffer(content, dtype=np.uint8)
    if not len(packed) or len(packed) % 3 or len(packed) // 3 * 2 % leads:
        raise DataError(f"{path} has {len(packed)} bytes, no whole number of sample pairs.")
    first, middle, last = packed.reshape(-1, 3).astype(np.int16).T
    pairs = np.stack([first | (middle & 0x0F) << 8, last | (middle & 0xF0) << 4], axis=1)
    signed = np.where(pairs > 2047, pairs - 4096, pairs)
    return signed.reshape(-1, leads)
