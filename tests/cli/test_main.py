from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sacm as package
from sacm.cli.main import GROUPS
from sacm.registry import COMMANDS, temporary_entries
from tests.cli.conftest import Command


def test_help_names_every_command(sacm: Command) -> None:
    outcome = sacm("--help")
    assert outcome.code == 0
    headings = [outcome.out.index(group) for group in GROUPS]
    assert headings == sorted(headings)
    assert all(name in outcome.out for name in COMMANDS.names())


@pytest.mark.parametrize("name", COMMANDS.names())
def test_every_command_has_help_with_an_example(sacm: Command, name: str) -> None:
    outcome = sacm(name, "--help")
    assert outcome.code == 0
    assert f"Example: sacm {name}" in outcome.out


@pytest.mark.parametrize("name", ["train", "predict", "quality", "compare"])
def test_help_begins_with_six_options_and_has_headings_for_the_rest(
    sacm: Command, name: str
) -> None:
    lists = sacm(name, "--help").out.split("╭─ ")
    (first,) = [text for text in lists if text.startswith("Options")]
    options = [line.split()[1] for line in first.splitlines() if line.startswith("│ --")]
    assert len([option for option in options if option != "--help"]) <= 6
    assert any(text.startswith("More options") for text in lists)


def test_a_plugin_adds_a_command(sacm: Command) -> None:
    with temporary_entries():
        add = COMMANDS.register("greet", group="Mine", help="Say hello.")
        add("tests.cli.test_main:greet")
        assert "Say hello." in sacm("--help").out
        assert sacm("greet", "world").out == "hello world\n"
    assert sacm("greet").code == 2


def greet(name: str) -> None:
    """Say hello.

    Example: sacm greet you
    """
    print(f"hello {name}")


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sacm", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert answer.stdout == f"sacm {package.__version__}\n"


def test_no_command_is_wrong_usage_but_helpful(sacm: Command) -> None:
    outcome = sacm()
    assert outcome.code == 2
    assert "Usage: sacm" in outcome.out + outcome.err
    assert "Error" not in outcome.err
