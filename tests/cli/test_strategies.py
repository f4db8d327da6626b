from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from sacm.cli.catalogues import strategies as command
from sacm.strategies import names
from sacm.strategies.registry import describe_all


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_table_shows_every_strategy_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run()
    for strategy in describe_all():
        assert strategy.name in shown
        assert all(option.name in shown for option in strategy.options)
    assert "Scorers: spectral. Mappers: tanh." in shown


def test_json_holds_the_same() -> None:
    record = json.loads(run("--json"))
    assert [each["name"] for each in record["strategies"]] == names()
    fixed = next(each for each in record["strategies"] if each["name"] == "fixed")
    assert fixed["options"] == [
        {
            "name": "p",
            "kind": "number",
            "default": None,
            "required": True,
            "help": "The rate, in [0, 1).",
        }
    ]
    assert record["scorers"] == ["spectral"]
    assert record["mappers"] == ["tanh"]
