"""`sacm backbones` and `sacm strategies`."""

from __future__ import annotations

import json

import pytest

from sacm import backbones
from sacm.strategies import describe, names
from tests.cli.conftest import Command


def test_the_table_shows_every_network_whole(
    sacm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = sacm("backbones").out
    assert all(name in table for name in backbones.names())
    assert "46,976,560" in table
    assert "very heavy" in table


def test_json_holds_both_sizes_and_all_settings(sacm: Command) -> None:
    every = json.loads(sacm("backbones", "--json").out)
    records = [each for each in every if each["task"] == "classification"]
    assert [each["name"] for each in records] == backbones.names("classification")
    patchtst = next(each for each in records if each["name"] == "PatchTST")
    assert patchtst["parameters"] == 77_971
    assert patchtst["config"]["width"] == 64
    assert patchtst["small"]["parameters"] < 77_971


def test_every_strategy_and_option_is_shown(sacm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = sacm("strategies").out
    for strategy in [describe(name) for name in names()]:
        assert strategy.name in shown
        assert all(option.name in shown for option in strategy.options)
    assert "Scorers: spectral. Mappers: tanh." in shown


def test_json_holds_the_strategies(sacm: Command) -> None:
    record = json.loads(sacm("strategies", "--json").out)
    assert [each["name"] for each in record["strategies"]] == names()
    fixed = next(each for each in record["strategies"] if each["name"] == "fixed")
    option = {"name": "p", "kind": "number", "default": None}
    assert fixed["options"] == [{**option, "help": "The rate, in [0, 1)."}]
    assert record["scorers"] == ["spectral"]
    assert record["mappers"] == ["tanh"]
