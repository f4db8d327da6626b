"""Results of runs as one pandas frame in long form, one row a run.

A row holds what was run (`run`, `task`, `data`, `backbone`, `size`, `horizon`, `strategy`, `seed`,
and every setting that some run changed), how it ended (`state`, `reason`) and what came out: test
results by their names, `epochs`, `best_epoch`, `seconds`, `rate_mean`, `validation` (the best one)
and `early_validation` (its mean over epochs 2 to 4, by which a race decides). A test of the same
run on other data, or a check, has columns `metric@name`. Committed result files are CSV of exactly
this frame.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sacm.errors import DataError, SACMError
from sacm.files import read_json
from sacm.settings import RunSettings

KEYS = ("task", "data", "backbone", "size", "horizon", "strategy", "seed")
OUTCOMES = (
    *("epochs", "best_epoch", "seconds", "seconds_per_epoch", "parameters", "windows"),
    *("rate_mean", "rate_std", "validation", "early_validation"),
)
EARLY = slice(1, 4)  # epochs 2 to 4
_LAST_EPOCHS = 10
FIRST = ("run", "state", "reason", *KEYS)
# Settings that are called as an outcome is: `epochs` counts those that were run.
_COLUMNS = {"epochs": "epoch_limit", "precision": "float_precision"}


def collect_runs(folder: Path) -> pd.DataFrame:
    """Read every run of a folder.

    Args:
        folder: Holds run folders; runs of several machines are merged by copying them together.

    Returns:
        One row a run, sorted by its name. `state` is done, begun, failed or damaged. Settings that
        no run changed have no column, and settings that this version does not know are left out.

    Raises:
        DataError: There is no such folder.

    Example:
        >>> import tempfile
        >>> collect_runs(Path(tempfile.mkdtemp())).empty
        True
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder of runs.")
    return read_runs(path.parent for path in sorted(folder.glob("*/config.json")))


def read_runs(folders: Iterable[Path]) -> pd.DataFrame:
    """Read run folders, one row each, in the given order."""
    return tidy([_read(folder) for folder in folders])


def tidy(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Make the frame of rows: settings at their default left out, columns in their usual order."""
    frame = pd.DataFrame(list(rows))
    if frame.empty:
        return pd.DataFrame(columns=list(FIRST))
    defaults = setting_defaults()
    for name in [column for column in frame if column in defaults]:
        if (frame[name].isna() | (frame[name] == defaults[name])).all():
            frame = frame.drop(columns=name)
    for name in FIRST:
        if name not in frame:
            frame[name] = None
    settings = [name for name in setting_defaults(every=True) if name in frame]
    start = [*FIRST, *settings]
    outcomes = [name for name in OUTCOMES if name in frame]
    tested = [name for name in frame if name not in (*start, *outcomes, "commit", "threads")]
    end = [name for name in ("commit", "threads") if name in frame]
    return frame[[*start, *tested, *outcomes, *end]].reset_index(drop=True)


def setting_defaults(*, every: bool = False) -> dict[str, Any]:
    """Columns of settings beyond the keys, with the value that a missing column stands for.

    Args:
        every: Also settings whose default depends on task and data, as None.
    """
    fields = RunSettings.model_fields
    found = {
        _COLUMNS.get(name, name): each.default for name, each in fields.items() if name not in KEYS
    }
    found["overrides"] = "{}"
    return {
        name: value for name, value in found.items() if every or name not in ("input_len", "select")
    }


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row."""
    rows: Any = frame.to_dict("records")
    return list(rows)


def _read(folder: Path) -> dict[str, Any]:
    """One row, of a run in any state."""
    try:
        row: dict[str, Any] = {"run": folder.name, "state": "begun", **_settings(folder)}
        if (folder / "metrics.json").exists():
            return {**row, **_outcome(folder), "state": "done"}
        if (folder / "failure.json").exists():
            reason = read_json(folder / "failure.json")["reason"]
            return {**row, "state": "failed", "reason": reason}
        return row
    except (SACMError, OSError, LookupError, TypeError, ValueError) as error:
        # One folder that was cut or edited must not take the table with it.
        reason = str(error) if isinstance(error, SACMError) else f"{type(error).__name__}: {error}"
        return {"run": folder.name, "state": "damaged", "reason": " ".join(reason.split())}


def _settings(folder: Path) -> dict[str, Any]:
    record = read_json(folder / "config.json")
    known = {name: record[name] for name in RunSettings.model_fields if name in record}
    values = {_COLUMNS.get(name, name): _as_cell(value) for name, value in known.items()}
    if values.get("scaling") == "shared":  # what data sets without series of their own resolve to
        values["scaling"] = None
    return values


def _as_cell(value: Any) -> Any:
    """A setting as a cell of a table."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _outcome(folder: Path) -> dict[str, Any]:
    metrics = read_json(folder / "metrics.json")
    for name in ("epochs", "train_seconds"):
        if name not in metrics:
            raise SACMError(f"{folder / 'metrics.json'} is damaged: it holds no {name}.")
    with (folder / "history.csv").open(encoding="utf-8") as file:
        history = list(csv.DictReader(file))
    values = {
        **metrics.get("test", {}),
        **_from_history(history),
        **_other_tests(folder),
        "epochs": metrics["epochs"],
        "best_epoch": metrics.get("best_epoch"),
        "seconds": metrics["train_seconds"],
        "seconds_per_epoch": round(metrics["train_seconds"] / max(metrics["epochs"], 1), 4),
        "parameters": metrics.get("parameters"),
        "windows": metrics.get("evaluated_windows"),
        "validation": next((metrics[n] for n in metrics if n.startswith("best_val_")), None),
        **_made_with(folder),
    }
    return {name: value for name, value in values.items() if value is not None}


def _from_history(history: list[dict[str, str]]) -> dict[str, float]:
    """Rates of the last epoch, validation of epochs 2 to 4, and tests after the last ten epochs."""
    last = history[-1] if history else {}
    values = {name: float(last[name]) for name in ("rate_mean", "rate_std") if last.get(name)}
    columns = {name: f"{name.removeprefix('test_')}_last_ten" for name in last if last[name]}
    for name, column in columns.items():
        if name.startswith("test_"):
            values[column] = _mean(history[-_LAST_EPOCHS:], name)
    validation = next((name for name in last if name.startswith("val_")), None)
    if validation is not None and len(history) >= EARLY.stop:
        values["early_validation"] = _mean(history[EARLY], validation)
    return values


def _mean(rows: list[dict[str, str]], name: str) -> float:
    return sum(float(row[name]) for row in rows) / len(rows)


def _other_tests(folder: Path) -> dict[str, float]:
    """Results on other data (`on_NAME.json`) and of checks (`check_NAME.json`)."""
    tests = {}
    for path in sorted((*folder.glob("on_*.json"), *folder.glob("check_*.json"))):
        name = path.stem.partition("_")[2]
        tests.update({f"{key}@{name}": value for key, value in read_json(path)["test"].items()})
    return tests


def _made_with(folder: Path) -> dict[str, Any]:
    """Commit and threads: what the halves of a pair should share."""
    path = folder / "environment.json"
    record = read_json(path) if path.exists() else {}
    commit = (record.get("git") or "")[:7] + ("*" if record.get("git_changed") else "")
    return {"commit": commit or None, "threads": record.get("threads")}
