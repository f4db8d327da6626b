"""Files as they come: packed, in other encodings, with other decimal signs, without a header."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError


def frame() -> pd.DataFrame:
    stamps = pd.date_range("2024-01-20", periods=30, freq="D")
    return pd.DataFrame({"date": stamps, "load": 1234.5 + np.arange(30), "heat": -0.25})


def check(table: Table) -> None:
    assert table.columns == ("load", "heat")
    np.testing.assert_array_equal(table.times, frame()["date"].to_numpy())
    np.testing.assert_array_equal(table.values, frame()[["load", "heat"]].to_numpy())


def test_a_zip_file_of_one_table(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.csv", frame().to_csv(index=False))
        archive.writestr("__MACOSX/x.csv", "junk")
    check(Table.read(tmp_path / "x.zip"))


def test_a_zip_file_of_several_tables_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "b\n1\n")
    with pytest.raises(DataError, match="holds 2 files: unpack it"):
        Table.read(tmp_path / "two.zip")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(DataError, match="damaged or locked zip file"):
        Table.read(tmp_path / "bad.zip")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16(tmp_path: Path, encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / "x.csv").write_bytes((mark + frame().to_csv(index=False)).encode(encoding))
    check(Table.read(tmp_path / "x.csv"))


def test_decimal_commas_and_thousands(tmp_path: Path) -> None:
    german = frame().assign(
        date=frame()["date"].dt.strftime("%d.%m.%Y"),
        load=[f"{value:,.1f}".translate(str.maketrans(",.", ".,")) for value in frame()["load"]],
        heat="-0,25",
    )
    german.to_csv(tmp_path / "x.csv", index=False, sep=";")
    check(Table.read(tmp_path / "x.csv", decimal=","))
    check(Table.read(german, decimal=","))
    with pytest.raises(DataError, match="column 'load'"):
        Table.read(tmp_path / "x.csv")


def test_thousands_with_a_comma(tmp_path: Path) -> None:
    english = frame().assign(load=[f"{value:,.1f}" for value in frame()["load"]])
    english.to_csv(tmp_path / "x.csv", index=False)
    check(Table.read(tmp_path / "x.csv", decimal="."))


def test_another_decimal_sign_is_refused() -> None:
    with pytest.raises(ArgumentError, match="decimal must be ',' or"):
        Table.read(frame(), decimal=";")  # type: ignore[arg-type] # what is tested


@pytest.mark.parametrize("style", ["%d/%m/%Y", "%d.%m.%y %H:%M", "%Y%m%d", "%d-%b-%Y"])
def test_a_first_row_with_a_date_is_no_header(tmp_path: Path, style: str) -> None:
    bare = frame().assign(date=frame()["date"].dt.strftime(style))
    bare.to_csv(tmp_path / "x.csv", index=False, header=False)
    table = Table.read(tmp_path / "x.csv")
    assert len(table.values) == 30
    np.testing.assert_array_equal(table.times, frame()["date"].to_numpy())


@pytest.mark.skipif(importlib.util.find_spec("openpyxl") is not None, reason="openpyxl is here")
def test_an_excel_file_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="needs openpyxl: install it, or save the sheet as CSV"):
        Table.read(tmp_path / "x.xlsx")


def test_a_title_above_the_header_is_named_as_such(tmp_path: Path) -> None:
    text = frame().to_csv(index=False)
    (tmp_path / "x.csv").write_text(f"Report of plant A\n\n{text}")
    with pytest.raises(DataError, match="if the first line is a title, put # before it"):
        Table.read(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text(f"# Report of plant A\n\n{text}")
    check(Table.read(tmp_path / "x.csv"))
