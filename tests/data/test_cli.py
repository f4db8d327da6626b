from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sacm.cli.data import app
from sacm.data.catalogue import names
from sacm.errors import ArgumentError

from .sources import layouts


def run(*arguments: str) -> str:
    """Standard output of a command; its errors are raised."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "140"})
    assert result.exit_code == 0
    return result.stdout


def test_list_shows_all_with_present_and_absent(tmp_path: Path, monkeypatch):
    layouts.table(tmp_path / "dataset" / "ETT-small" / "ETTh1.csv", np.zeros((30, 7)))
    monkeypatch.setenv("SACM_DATA", str(tmp_path))
    printed = run("list")
    assert all(name in printed for name in names())
    assert printed.count("absent") == 44
    assert "1 of 45 present" in printed
    rows = json.loads(run("list", "--json", "--task", "anomaly"))
    assert [row["name"] for row in rows] == ["SMD", "MSL", "SMAP", "PSM"]
    assert not any(row["present"] for row in rows)


def test_info_says_what_to_beware_of():
    assert "-9999" in run("info", "weather")
    assert "border" in run("info", "SMAP")
    record = json.loads(run("info", "Libras", "--json"))
    assert record["licence"]
    assert record["files"][0]["url"].endswith("Libras.zip")
    assert "19 distinct cases" in record["facts"][0]


def test_get_names_the_place(tmp_path: Path, monkeypatch):
    layouts.table(tmp_path / "ETTh1.csv", np.zeros((30, 7)))
    monkeypatch.setenv("SACM_DATA", str(tmp_path))
    assert "already there" in run("get", "ETTh1")
    assert json.loads(run("get", "ETTh1", "--json"))[0]["path"] == str(tmp_path / "ETTh1.csv")


def test_errors_are_ours():
    with pytest.raises(ArgumentError, match="did you mean Weather"):
        run("info", "Wether")
    with pytest.raises(ArgumentError, match="unknown task 'vision'"):
        run("list", "--task", "vision")


@pytest.mark.parametrize("command", ["list", "info", "get"])
def test_help_has_an_example(command):
    assert f"sacm data {command}" in run(command, "--help")
