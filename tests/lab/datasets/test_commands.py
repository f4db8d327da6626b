from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sacm.data import names
from tests.cli.conftest import Command
from tests.lab.datasets import layouts


def test_list_shows_all_with_present_and_absent(sacm: Command, tmp_path: Path, monkeypatch):
    layouts.table(tmp_path / "dataset" / "ETT-small" / "ETTh1.csv", np.zeros((30, 7)))
    monkeypatch.setenv("SACM_DATA", str(tmp_path))
    printed = sacm("data", "list").out
    assert all(name in printed for name in names())
    assert printed.count("absent") == 43  # ILI is part of the package
    assert "2 of 45 present" in printed
    rows = json.loads(sacm("data", "list", "--json", "--task", "anomaly").out)
    assert [row["name"] for row in rows] == ["SMD", "MSL", "SMAP", "PSM"]
    assert not any(row["present"] for row in rows)


def test_info_says_what_to_beware_of(sacm: Command):
    assert "-9999" in sacm("data", "info", "weather").out
    assert "border" in sacm("data", "info", "SMAP").out
    record = json.loads(sacm("data", "info", "Libras", "--json").out)
    assert record["licence"]
    assert record["files"][0]["url"].endswith("Libras.zip")
    assert "19 distinct cases" in record["facts"][0]


def test_get_names_the_place(sacm: Command, tmp_path: Path, monkeypatch):
    layouts.table(tmp_path / "ETTh1.csv", np.zeros((30, 7)))
    monkeypatch.setenv("SACM_DATA", str(tmp_path))
    assert "already there" in sacm("data", "get", "ETTh1").out
    record = json.loads(sacm("data", "get", "ETTh1", "--json").out)
    assert record[0]["path"] == str(tmp_path / "ETTh1.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "Wether"), "Did you mean 'Weather'?"),
        (("list", "--task", "vision"), "unknown task 'vision'"),
    ],
)
def test_errors_are_ours(sacm: Command, arguments: tuple[str, ...], message: str):
    outcome = sacm("data", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
