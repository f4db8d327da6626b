"""Tables beside the catalogue: checksums of many small files, borders inside joined ones."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


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
