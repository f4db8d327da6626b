"""All runs of a folder as one table: a Parquet file that DuckDB, pandas or polars can ask.

The run folders are what counts; the table can be made from them at any time. Two machines' runs
are merged by copying the folders together; a run that is there twice is one line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from sacm.errors import SACMError
from sacm.experiments.run_files import RESULTS, read_failure, read_record_with
from sacm.files import write_atomically
from sacm.settings import ResolvedSettings

TABLE_FILE = "runs.parquet"
_WORDS = ("state", "reason")


def table(folder: Path) -> pd.DataFrame:
    """One line a run: settings, state, epochs, seconds, and every test result as a column.

    A result that is called as a setting is has `test_` before its name.
    """
    lines: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*/config.json")):
        identity = _identity(path.parent)
        if identity not in lines or identity == path.parent.name:  # the original, not a copy
            lines[identity] = _line(path.parent)
    return pd.DataFrame(list(lines.values()))


def write_run_table(folder: Path) -> Path:
    """Refresh the Parquet file of a folder."""
    frame = table(folder)
    write_atomically(folder / TABLE_FILE, lambda path: frame.to_parquet(path, index=False))
    return folder / TABLE_FILE


def _identity(folder: Path) -> str:
    """The name that settings and data give a run; the folder's own where they cannot be read."""
    try:
        settings = _settings(folder)
        mark = read_record_with(folder / "environment.json", "fingerprint")["fingerprint"]
    except (SACMError, ValidationError):
        return folder.name
    return settings.run_id(mark)


def _settings(folder: Path) -> ResolvedSettings:
    return ResolvedSettings(**read_record_with(folder / "config.json"))


def _line(folder: Path) -> dict[str, Any]:
    try:
        return _read(folder)
    except (SACMError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        return {"run": folder.name, "state": "damaged", "reason": reason}


def _read(folder: Path) -> dict[str, Any]:
    settings = _settings(folder).model_dump()
    line: dict[str, Any] = {"run": folder.name, **settings}
    line["overrides"] = json.dumps(settings["overrides"], sort_keys=True)
    line.update(dict.fromkeys(_WORDS))
    if (folder / "metrics.json").exists():
        metrics = read_record_with(folder / "metrics.json", *RESULTS)
        plain = {k: v for k, v in metrics.items() if k not in ("test", "report")}
        # A detector's precision is a result, that of the numbers it was trained in a setting.
        results = {
            f"test_{name}" if name in line else name: value
            for name, value in metrics.get("test", {}).items()
        }
        return {**line, "state": "done", **plain, **results}
    failure = read_failure(folder)
    if failure is None:
        return {**line, "state": "begun"}
    return {**line, **dict(zip(_WORDS, failure, strict=True))}
