"""All runs of a folder as one table: a Parquet file that DuckDB, pandas or polars can ask.

The run folders are what counts; the table can be made from them at any time. Two machines' runs
are merged by copying the folders together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from sacm.errors import SACMError
from sacm.training.files import read_json, write_atomically
from sacm.training.run import Run

TABLE = "runs.parquet"
_WORDS = ("state", "reason")


def table(folder: Path) -> pd.DataFrame:
    """One line a run: settings, state, epochs, seconds, and every test result as a column."""
    lines = [_line(path.parent) for path in sorted(folder.glob("*/config.json"))]
    return pd.DataFrame(lines)


def write_table(folder: Path) -> Path:
    """Refresh the Parquet file of a folder."""
    frame = table(folder)
    write_atomically(folder / TABLE, lambda path: frame.to_parquet(path, index=False))
    return folder / TABLE


def _line(folder: Path) -> dict[str, Any]:
    try:
        return _read(folder)
    except (SACMError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        return {"run": folder.name, "state": "damaged", "reason": reason}


def _read(folder: Path) -> dict[str, Any]:
    run = Run(folder)
    settings = run.settings.model_dump()
    line: dict[str, Any] = {"run": folder.name, **settings}
    line["overrides"] = json.dumps(settings["overrides"], sort_keys=True)
    line.update(dict.fromkeys(_WORDS))
    if run.finished:
        plain = {k: v for k, v in run.metrics.items() if k not in ("test", "report")}
        return {**line, "state": "done", **plain, **run.metrics.get("test", {})}
    if (folder / "failure.json").exists():
        record = read_json(folder / "failure.json")
        state = "interrupted" if record.get("killed") else "failed"
        return {**line, "state": state, "reason": record.get("reason")}
    return {**line, "state": "begun"}
