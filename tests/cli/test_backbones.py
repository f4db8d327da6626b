from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from sacm import backbones
from sacm.cli.catalogues import backbones as command
from sacm.errors import ArgumentError


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_table_shows_every_network_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = run()
    assert all(name in table for name in backbones.names())
    assert "46,976,560" in table
    assert "very heavy" in table


def test_json_holds_both_sizes_and_all_settings() -> None:
    records = json.loads(run("--json", "--task", "classification"))
    assert [each["name"] for each in records] == backbones.names("classification")
    patchtst = next(each for each in records if each["name"] == "PatchTST")
    assert patchtst["sizes"]["paper"]["parameters"] == 77_971
    assert patchtst["sizes"]["paper"]["settings"]["width"] == 64
    assert patchtst["sizes"]["small"]["parameters"] < 77_971


def test_unknown_task() -> None:
    with pytest.raises(ArgumentError, match="unknown task 'regression'"):
        run("--task", "regression")
