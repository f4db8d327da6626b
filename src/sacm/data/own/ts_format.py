"""The `.ts` text format of the UEA archive."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sacm.data.tables.columns import LARGEST
from sacm.data.tables.csv_file import check_csv_file, is_number, read_bytes
from sacm.errors import DataError


@dataclass(frozen=True)
class Cases:
    """Cases `[C, L_i]` and their labels."""

    values: list[np.ndarray]
    labels: np.ndarray


def read_ts(path: Path) -> Cases:
    """A `.ts` file."""
    check_csv_file(path)
    return parse_ts(read_bytes(path), str(path))


def parse_ts(content: bytes, where: str) -> Cases:
    """The content of a `.ts` file."""
    lines = enumerate(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace"), 1)
    read_head(lines, where)
    values: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            case, label = parse_case(text, f"{where}: line {number}")
            if values and len(case) != len(values[0]):
                raise DataError(
                    f"{where}: line {number} has {len(case)} channels where the first case has "
                    f"{len(values[0])}."
                )
            values.append(case)
            labels.append(label)
    if not values:
        raise DataError(f"{where} has no cases after @data.")
    return Cases(values, np.array(labels))


def read_head(lines: Iterator[tuple[int, str]], where: str) -> None:
    """Everything up to `@data`; only what cannot be read stops here."""
    for number, line in lines:
        words = line.strip().lower().split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "@data":
            return
        if not words[0].startswith("@"):
            raise DataError(f"{where}: line {number} comes before @data but is no header line.")
        if words[0] == "@timestamps" and words[1:] == ["true"]:
            raise DataError(f"{where} has a timestamp at every value, which is not supported.")
        if words[0] == "@targetlabel" or words[:2] == ["@classlabel", "false"]:
            raise DataError(f"{where} has no class labels.")
    raise DataError(f"{where} has no @data line: it is not a .ts file, or is cut off.")


def parse_case(text: str, where: str) -> tuple[np.ndarray, str]:
    """One line: channels and label, separated by colons."""
    *channels, label = text.split(":")
    if not channels:
        raise DataError(f"{where} has no class label: the file may be cut off there.")
    parsed = [parse_channel(channel, where) for channel in channels]
    lengths = {len(channel) for channel in parsed}
    if len(lengths) > 1:
        raise DataError(f"{where}: channels have {min(lengths)} to {max(lengths)} values.")
    return np.stack(parsed), label.strip()


def parse_channel(text: str, where: str) -> np.ndarray:
    """Comma-separated numbers; `?` is missing."""
    entries = text.replace("?", "nan").split(",")
    try:
        values = np.array(entries, dtype=np.float64)
    except ValueError as error:
        wrong = next((i for i, entry in enumerate(entries) if not is_number(entry)), 0)
        found = entries[wrong].strip()
        raise DataError(
            f"{where}: value {wrong + 1} of a channel is {found!r}, no number."
        ) from error
    if (np.abs(values) > LARGEST).any():
        raise DataError(f"{where} holds an infinite or too large value.")
    return values.astype(np.float32)


def pad(cases: list[np.ndarray], channels: int, length: int) -> np.ndarray:
    """Cases `[C, L_i]` as `[N, C, length]` with NaN at the end."""
    result = np.full((len(cases), channels, length), np.nan, dtype=np.float32)
    for place, case in zip(result, cases, strict=True):
        if len(case) != channels:
            raise DataError(f"A test case has {len(case)} channels, training has {channels}.")
        place[:, : case.shape[1]] = case
    return result
