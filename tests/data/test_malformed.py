"""What goes wrong with data in practice: each case gives one sentence that names the place."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm.data import AnomalyData, anomaly_data, classification_data, forecasting_data
from sacm.errors import DataError

HEADER = "date,a,b\n"
ROWS = [f"2021-01-01 {hour:02d}:00:00,{hour}.5,{hour * 2}\n" for hour in range(20)]
TS = "@problemName x\n@classLabel true u v\n@data\n"


def text(content: str, name: str = "x.csv") -> Callable[[Path], Path]:
    """A file with this content."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_text(content)
        return path

    return write


def binary(content: bytes, name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return write


def table(**changes: Any) -> Callable[[Path], pd.DataFrame]:
    """A good frame with columns changed."""
    frame = pd.DataFrame(
        {"date": pd.date_range("2021-01-01", periods=20, freq="h"), "a": np.arange(20.0)}
    ).assign(**changes)
    return lambda folder: frame


def dates(*replaced: tuple[int, str]) -> list[str]:
    listed = [f"2021-01-01 {hour:02d}:00" for hour in range(20)]
    for row, value in replaced:
        listed[row] = value
    return listed


def saved(**arrays: np.ndarray) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        np.savez(folder / "x.npz", **arrays)
        return folder / "x.npz"

    return write


FORECASTING = {
    "no such file": (lambda folder: folder / "none.csv", r"There is no file .*none\.csv"),
    "a folder": (lambda folder: folder, "is a folder: name a file"),
    "empty file": (text(""), r"x\.csv is empty"),
    "blank file": (text("\n\n"), r"x\.csv is empty"),
    "header only": (text(HEADER), "no rows of numbers after"),
    "two rows": (text(HEADER + "".join(ROWS[:2])), "has 2 rows: too few"),
    "a line with too many fields": (
        text(HEADER + "".join(ROWS[:5]) + "2021-01-01 05:00:00,1,2,3\n"),
        "line 7 has 4 fields where the header has 3",
    ),
    "a decimal comma among numbers": (
        table(b=["1.5"] * 10 + ["1,5"] * 10),
        "column 'b' holds '1,5', which is no number with the decimal sign '.'",
    ),
    "beyond float32": (
        table(b=[1.0] * 7 + [1e39] * 13),
        r"column 'b' is 1e\+39 in row 8, which is too large",
    ),
    "duplicate dates": (
        table(date=dates((5, "2021-01-01 04:00"))),
        "rows 5 and 6 have the same time, 2021-01-01 04:00:00 .* --duplicates mean or",
    ),
    "irregular dates": (
        table(date=dates((5, "2021-01-01 05:07"))),
        r"irregular: 1 of 20 rows .* \(first 2021-01-01 05:07:00 \(row 6\)\): --resample",
    ),
    "no date among dates": (
        table(date=dates((5, "yesterday"))),
        "row 6 of the time column 'date' holds 'yesterday', which cannot be read as a date like",
    ),
    "a time column that goes back": (
        table(date=[*range(10), *range(10)]),
        "column 'date' counts rows and begins anew: leave it out with --ignore date",
    ),
    "frame columns of the same name": (
        lambda folder: pd.DataFrame(np.zeros((9, 2)), columns=["a", "a"]),
        "two columns are called 'a'",
    ),
    "dates and nothing else": (
        lambda folder: pd.DataFrame({"date": dates()}),
        "no column of values",
    ),
    "damaged gzip": (
        binary(gzip.compress(b"a,b\n1,2\n")[:-9], "x.csv.gz"),
        "not a readable .gz file",
    ),
    "damaged parquet": (binary(b"PAR1 not really", "x.parquet"), "not a readable .parquet file"),
    "a picture called csv": (binary(b"\x89PNG\r\n\0\0\0\rIHDR", "x.csv"), "not a text file"),
    "damaged npy": (binary(b"\x93NUMPY\x01\x00", "x.npy"), "not a readable .npy file"),
    "objects in an array": (lambda folder: np.array(["a", 1], dtype=object), "not numbers"),
    "too many dimensions": (lambda folder: np.zeros((2, 3, 4)), r"\[T\] or \[T, C\], got"),
    "an archive of many": (
        saved(one=np.zeros(3), two=np.zeros(3)),
        "holds 2 arrays, one, two: --sheet one",
    ),
    "not data at all": (lambda folder: object(), "pass a file, an array or a data frame"),
}

CASES = {
    "not a .ts file": (text("hello\n", "x.ts"), "no @data line"),
    ".ts without data": (text("@problemName x\n", "x.ts"), "no @data line"),
    ".ts without cases": (text(TS, "x.ts"), "no cases after @data"),
    ".ts cut off": (text(TS + "1,2:3,4:u\n1,2", "x.ts"), "case 2 has no class label"),
    ".ts with text": (text(TS + "1,zwei:u\n", "x.ts"), "case 1 does not hold numbers"),
    ".ts with mixed lengths": (text(TS + "1,2:3:u\n", "x.ts"), "case 1 does not hold"),
    ".ts with mixed channels": (
        text(TS + "1,2:3,4:u\n1,2:v\n", "x.ts"),
        "case 2 has 1 channels, the first 2",
    ),
    ".ts for regression": (text("@targetLabel true\n@data\n1:2\n", "x.ts"), "no class labels"),
    ".ts with timestamps": (text("@timeStamps true\n@data\n", "x.ts"), "not supported"),
    "one class": (text(TS + "1,2:u\n3,4:u\n", "x.ts"), "all training cases have the label 'u'"),
    "wrong file type": (text("1,2\n", "x.csv"), r"\.ts or \.npz files"),
    "damaged archive": (binary(b"PK\x03\x04 broken", "x.npz"), "damaged archive"),
    "another archive": (saved(values=np.zeros(3)), "not a classification archive"),
    "an archive with labels too few": (
        saved(X_train=np.zeros((3, 4)), y_train=[0, 1], X_test=np.zeros((1, 4)), y_test=[0]),
        r"3 training cases but labels \[2\]",
    ),
}


def check(reader: Callable[[Any], Any], source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        reader(source)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")


@pytest.mark.parametrize("case", FORECASTING)
def test_series(case: str, tmp_path: Path):
    make, message = FORECASTING[case]
    check(forecasting_data, make(tmp_path), message)


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, tmp_path: Path):
    make, message = CASES[case]
    check(classification_data, make(tmp_path), message)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((3, 1, 4)), ["a", "b"], r"3 training cases but labels \[2\]"),
        (np.zeros((3, 1, 4)), None, "no labels y"),
        ([], [], "no training cases"),
        ([np.zeros((2, 4)), np.zeros((1, 4))], ["a", "b"], "case 2 has 1 channels"),
        ([np.zeros(4), np.full(4, np.nan)], ["a", "b"], "case 2 holds no value"),
        ([np.zeros(4), np.full(4, np.inf)], ["a", "b"], "case 2 holds an infinite"),
        ([["x", "y"], ["u", "v"]], ["a", "b"], "case 1 does not hold numbers"),
        (np.zeros((2, 2, 2, 2)), ["a", "b"], r"case 1 must be \[C, L\]"),
    ],
)
def test_case_arrays(X, y, message):
    """Arrays and lists in place of files."""
    check(lambda source: classification_data(source, y), X, message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "b"}, r"label 2\.0 of test row 2 is not 0 or 1"),
        ({"split": (0.01, 0.99)}, "too few rows to train and test on"),
    ],
)
def test_telemetry(options, message):
    frame = pd.DataFrame({"a": np.zeros(10), "b": [0] * 6 + [2, 0, 0, 0]})
    check(lambda source: anomaly_data(source, **options), frame, message)


@pytest.mark.parametrize(
    ("test", "labels", "message"),
    [
        (np.zeros((5, 3)), np.zeros(5), "with the same channels"),
        (np.zeros((5, 2)), np.zeros(2), "2 labels for 5 test rows"),
    ],
)
def test_arrays_of_telemetry(test, labels, message):
    names = ("a", "b")
    check(lambda train: AnomalyData("x", train, test, labels, names), np.zeros((9, 2)), message)
