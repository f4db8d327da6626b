"""Results of runs as one pandas frame in long form, one row a run.

A row holds what was run (`run`, `task`, `data`, `backbone`, `size`, `horizon`, `strategy`, `seed`,
and every setting that some run changed), how it ended (`state`, `reason`) and what came out: test
results by their names, `epochs`, `best_epoch`, `seconds`, `rate_mean`, `validation` (the best one)
and `early_validation` (its mean over epochs 2 to 4, by which a race decides). A test of the same
run on other data, or a check, has columns `metric@name`. Committed result files are CSV of exactly
this frame.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sacm.errors import DataError, SACMError
from sacm.experiments.compare import run_results
from sacm.files import read_json
from sacm.settings import RunSettings
from sacm.training.run import Run

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
    """Read every run of a folder, one row each, sorted by name.

    `state` is done, begun, failed or damaged. Settings that no run changed have no column, and
    settings that this version does not know are left out.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder of runs.")
    return tidy([_read(path.parent) for path in sorted(folder.glob("*/config.json"))])


def tidy(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Make the frame of rows: settings at their default left out, columns in their usual order."""
    frame = pd.DataFrame(list(rows))
    for name, default in setting_defaults().items():
        if name in frame and (frame[name].isna() | (frame[name] == default)).all():
            frame = frame.drop(columns=name)
    start = [*FIRST, *(name for name in setting_defaults(every=True) if name in frame)]
    end = [name for name in (*OUTCOMES, "commit", "threads") if name in frame]
    tested = [name for name in frame if name not in (*start, *end)]
    return frame.reindex(columns=[*start, *tested, *end]).reset_index(drop=True)


def setting_defaults(*, every: bool = False) -> dict[str, Any]:
    """Columns of settings beyond the keys, with the value that a missing column stands for."""
    fields = RunSettings.model_fields
    names = [name for name in fields if every or name not in ("input_len", "select")]
    defaults = {_COLUMNS.get(n, n): fields[n].default for n in names if n not in KEYS}
    return {**defaults, "overrides": "{}"}


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
        reason = f"a file holds no {error}" if isinstance(error, KeyError) else str(error)
        return {"run": folder.name, "state": "damaged", "reason": " ".join(reason.split())}


def _settings(folder: Path) -> dict[str, Any]:
    record = read_json(folder / "config.json")
    values: dict[str, Any] = {}
    for name in (name for name in RunSettings.model_fields if name in record):
        value = record[name]
        if isinstance(value, dict):
            value = json.dumps(value, sort_keys=True)
        elif isinstance(value, list):
            value = ",".join(map(str, value))
        values[_COLUMNS.get(name, name)] = value
    if values.get("scaling") == "shared":  # what data sets without series of their own resolve to
        values["scaling"] = None
    return values


def _outcome(folder: Path) -> dict[str, Any]:
    environment = folder / "environment.json"
    made = read_json(environment) if environment.exists() else {}
    commit = (made.get("git") or "")[:8]
    run = Run(folder)
    validation = [value for name, value in run.metrics.items() if name.startswith("best_val_")]
    values = {
        **run_results(run),
        **_from_history(folder),
        **_other_tests(folder),
        "validation": validation[0] if validation else None,
        "commit": commit or None,
        "threads": made.get("threads"),
    }
    return {name: value for name, value in values.items() if value is not None}


def _from_history(folder: Path) -> dict[str, float]:
    """Validation of epochs 2 to 4, and tests after the last ten epochs."""
    try:
        history = pd.read_csv(folder / "history.csv", float_precision="round_trip")
    except pd.errors.EmptyDataError:  # nothing was trained
        return {}
    values: dict[str, float] = {}
    for name in history.columns:
        if name.startswith("test_"):
            column = f"{name.removeprefix('test_')}_last_ten"
            values[column] = float(history[name].tail(_LAST_EPOCHS).mean())
        elif name.startswith("val_") and len(history) >= EARLY.stop:
            values["early_validation"] = float(history[name].iloc[EARLY].mean())
    return values


def _other_tests(folder: Path) -> dict[str, float]:
    """Results on other data (`on_NAME.json`) and of checks (`check_NAME.json`)."""
    tests = {}
    for path in sorted((*folder.glob("on_*.json"), *folder.glob("check_*.json"))):
        name = path.stem.partition("_")[2]
        tests.update({f"{key}@{name}": value for key, value in read_json(path)["test"].items()})
    return tests
