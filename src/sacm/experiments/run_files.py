"""What the files of a run folder say; a file that says something else is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from sacm.errors import SACMError
from sacm.files import read_json, write_json

RESULTS = ("epochs", "train_seconds", "test_seconds")  # in the metrics of every finished run
_FAILURE = "failure.json"


def read_record_with(path: Path, *names: str) -> dict[str, Any]:
    """A JSON object that holds at least these names."""
    record = read_json(path)
    if not isinstance(record, dict):
        raise SACMError(f"{path} is damaged: it holds no record.")
    for name in names:
        if name not in record:
            raise SACMError(f"{path} is damaged: it holds no {name}.")
    return record


def read_failure(run: Path) -> tuple[Literal["failed", "interrupted"], str] | None:
    """Whether a run failed by itself or was interrupted, and why; None if nothing is said."""
    if not (run / _FAILURE).exists():
        return None
    try:
        record = read_record_with(run / _FAILURE, "reason")
    except SACMError as error:
        return "failed", str(error)
    return "interrupted" if record.get("killed") else "failed", str(record["reason"])


def write_failure(run: Path, reason: str, *, killed: bool) -> None:
    """Leave word of why there is no result."""
    write_json(run / _FAILURE, {"reason": reason, "killed": killed})
