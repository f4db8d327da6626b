"""`sacm quality` of labelled cases: which labels are wrong, and what they should be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sacm.errors import DataError

if TYPE_CHECKING:
    from sacm.data.datasets import ClassificationData


@dataclass(frozen=True)
class LabelledCases:
    """Cases `[N, C, L]`, their labels, their names in the file, and who they belong to."""

    values: np.ndarray
    labels: np.ndarray
    names: list[str]
    subjects: np.ndarray | None = None


def read_labelled_cases(data: str, reading: dict[str, Any]) -> LabelledCases | None:
    """The cases of a file or data set; None if it holds rows of series instead.

    Cases are in `.ts` files, archives with `X_train`, data sets for classification, and in tables
    for which `--id` and `--label` are given.
    """
    from sacm.data.load import load, names, names_file

    path = Path(data)
    if not names_file(data):
        classified = {name.casefold() for name in names("classification")}
        return _of_data(load(data)) if data.casefold() in classified else None
    if path.suffix == ".ts" or (path.suffix == ".npz" and _holds_cases(path)):
        from sacm.data.load import resolve

        return _of_data(resolve(data, task="classification", reading=reading))
    if not (reading.get("id") and reading.get("label")):
        return None
    return _of_table(path, reading)


def _of_data(data: Any) -> LabelledCases:
    """Training and test cases, which are judged alike."""
    read: ClassificationData = data
    values = np.concatenate([read.X_train, read.X_test])
    labels = np.concatenate([read.y_train, read.y_test])
    names = [f"train {i}" for i in range(len(read.y_train))]
    names += [f"test {i}" for i in range(len(read.y_test))]
    subjects = None
    if read.subjects_train is not None and read.subjects_test is not None:
        subjects = np.concatenate([read.subjects_train, read.subjects_test])
    return LabelledCases(values, labels, names, subjects)


def _of_table(path: Path, reading: dict[str, Any]) -> LabelledCases:
    from sacm.cli.output import note
    from sacm.data.cases import pad, read_case_table

    note("labels of cases (--id, --label) are looked at; leave --label out to look at the values")
    cases, names = read_case_table(path, reading)
    longest = max(case.shape[1] for case in cases.values)
    return LabelledCases(pad(cases.values, len(cases.values[0]), longest), cases.labels, names)


def _holds_cases(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "X_train" in archive.files
    except (OSError, ValueError):  # said in a sentence by who reads it
        return False


def judge_labels(
    cases: LabelledCases, *, out: Path | None, flags: Path | None, keep: Path | None, as_json: bool
) -> float:
    """Judge the labels of cases, print or write what is found, and return the share flagged."""
    from sacm.cli.output import show_json
    from sacm.cli.runs import write_file
    from sacm.quality.labels import find_wrong_labels

    kept = () if keep is None else _kept_cases(keep)
    found = find_wrong_labels(
        cases.values, cases.labels, groups=cases.subjects, names=cases.names, keep=kept
    )
    if out is not None:
        found.report(out)
    table = found.to_frame()
    if flags is not None:
        write_file(flags, lambda file: table.to_csv(file, index=False))
    if as_json:
        record = {"cases": len(cases.labels), "trust": found.trust, "reason": found.reason}
        record |= {"noise_rate": found.noise_rate, "noise_interval": list(found.noise_interval)}
        show_json({**record, "suspicious": table.drop(columns="keep").to_dict("records")})
        return float(found.flagged.mean())
    typer.echo(found.summary())
    for name, written in (("report", out), ("flags", flags)):
        if written is not None:
            typer.echo(f"{name}: {written}")
    return float(found.flagged.mean())


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
