"""`sacm quality` of labelled cases: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from sacm.errors import DataError


def read_labelled_cases(data: str, reading: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments of `find_wrong_labels`; None if a file or data set holds rows of series instead."""
    from sacm.cli.output import note
    from sacm.data.cases import pad, read_case_table
    from sacm.data.load import names, names_file, resolve

    path = Path(data)
    if names_file(data):
        archive = is_zipfile(path) and "X_train.npy" in ZipFile(path).namelist()
        holds_cases = archive or path.suffix == ".ts"
    else:
        holds_cases = data.casefold() in {name.casefold() for name in names("classification")}
    if holds_cases:  # training and test cases are judged alike
        found: Any = resolve(data, task="classification", reading=reading)
        parts = {"train": len(found.y_train), "test": len(found.y_test)}
        both = (found.subjects_train, found.subjects_test)
        return {
            "X": np.concatenate([found.X_train, found.X_test]),
            "y": np.concatenate([found.y_train, found.y_test]),
            "names": [f"{part} {i}" for part, count in parts.items() for i in range(count)],
            "groups": None if any(each is None for each in both) else np.concatenate(both),
        }
    if not (reading.get("id") and reading.get("label")):
        return None
    note("labels of cases (--id, --label) are looked at; leave --label out to look at the values")
    cases, case_names = read_case_table(path, reading)
    X = pad(cases.values, len(cases.values[0]), max(case.shape[1] for case in cases.values))
    return {"X": X, "y": cases.labels, "names": case_names}


def judge_labels(cases: dict[str, Any], keep: Path | None) -> Any:
    """Judge the labels of cases; those with something in the column `keep` of a file stay."""
    import pandas as pd

    from sacm.quality.labels import find_wrong_labels

    kept: list[str] = []
    if keep is not None:
        try:
            kept = pd.read_csv(keep, dtype=str).dropna(subset="keep")["case"].tolist()
        except OSError as error:
            raise DataError(f"{keep} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError) as error:
            needed = "needs the columns case and keep, as --flags writes them"
            raise DataError(f"{keep} {needed}.") from error
    return find_wrong_labels(**cases, keep=kept)


def record_labels(quality: Any) -> dict[str, Any]:
    """What was found, for JSON."""
    return {
        "cases": len(quality.given),
        "trust": quality.trust,
        "reason": quality.reason,
        "noise_rate": quality.noise_rate if quality.trust else None,
        "noise_interval": list(quality.noise_interval),
        "suspicious": quality.to_frame().drop(columns="keep").to_dict("records"),
    }
