"""`sacm quality` of labelled cases: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from sacm.errors import DataError


def read_labelled_cases(data: str, reading: dict[str, Any]) -> dict[str, Any] | None:
    """The cases of a file or data set; None if it holds rows of series instead.

    Cases are in `.ts` files, archives with `X_train`, data sets for classification, and in tables
    for which `--id` and `--label` are given.

    Returns:
        Arguments of `find_wrong_labels`: X, y, names, and groups where subjects are told apart.
    """
    from sacm.data.load import names, names_file, resolve

    path = Path(data)
    if not names_file(data):
        holds_cases = data.casefold() in {name.casefold() for name in names("classification")}
    else:
        holds_cases = path.suffix == ".ts" or (path.suffix == ".npz" and _is_archive(path))
    if holds_cases:
        return _join_parts(resolve(data, task="classification", reading=reading))
    if not (reading.get("id") and reading.get("label")):
        return None

    from sacm.cli.output import note
    from sacm.data.cases import pad, read_case_table

    note("labels of cases (--id, --label) are looked at; leave --label out to look at the values")
    cases, case_names = read_case_table(path, reading)
    longest = max(case.shape[1] for case in cases.values)
    X = pad(cases.values, len(cases.values[0]), longest)
    return {"X": X, "y": cases.labels, "names": case_names}


def _join_parts(data: Any) -> dict[str, Any]:
    """Training and test cases, which are judged alike."""
    names = [f"train {i}" for i in range(len(data.y_train))]
    names += [f"test {i}" for i in range(len(data.y_test))]
    subjects = (data.subjects_train, data.subjects_test)
    return {
        "X": np.concatenate([data.X_train, data.X_test]),
        "y": np.concatenate([data.y_train, data.y_test]),
        "names": names,
        "groups": None if any(each is None for each in subjects) else np.concatenate(subjects),
    }


def _is_archive(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "X_train" in archive.files
    except (OSError, ValueError):  # said in a sentence by who reads it
        return False


def judge_labels(
    cases: dict[str, Any], *, out: Path | None, flags: Path | None, keep: Path | None, as_json: bool
) -> float:
    """Judge the labels of cases, print or write what is found, and return the share flagged."""
    from sacm.cli.output import show_json
    from sacm.files import write_atomically
    from sacm.quality.labels import find_wrong_labels

    quality = find_wrong_labels(**cases, keep=() if keep is None else _kept_cases(keep))
    if out is not None:
        quality.report(out)
    table = quality.to_frame()
    if flags is not None:
        write_atomically(flags, lambda file: table.to_csv(file, index=False))
    if as_json:
        record = {"cases": len(quality.given), "trust": quality.trust, "reason": quality.reason}
        record |= {"noise_rate": quality.noise_rate, "noise_interval": list(quality.noise_interval)}
        show_json({**record, "suspicious": table.drop(columns="keep").to_dict("records")})
    else:
        typer.echo(quality.summary())
        for name, written in (("report", out), ("flags", flags)):
            if written is not None:
                typer.echo(f"{name}: {written}")
    return float(quality.flagged.mean())


def _kept_cases(path: Path) -> list[str]:
    """Cases of a table whose column `keep` says something."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not {"case", "keep"} <= set(table.columns):
        raise DataError(f"{path} needs the columns case and keep, as --flags writes them.")
    return table.loc[table["keep"].notna(), "case"].tolist()
