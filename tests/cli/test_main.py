from __future__ import annotations

import json
import subprocess
import sys

import pytest

import sacm as package
from sacm.cli.main import COMMANDS
from tests.cli.conftest import Command

HEAVY = ("torch", "numpy", "pandas", "lightning", "sklearn", "matplotlib")


def loaded_after(*arguments: str) -> list[str]:
    """What a fresh interpreter has imported once the command line has answered."""
    program = (
        "import json, sys; sys.argv = json.loads(sys.argv[1])\n"
        "from sacm.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    given = json.dumps(["sacm", *arguments])
    answer = subprocess.run(
        [sys.executable, "-c", program, given], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(answer.stderr.splitlines()[-1])
    return modules


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"]])
def test_nothing_heavy_is_loaded_to_answer(arguments: list[str]) -> None:
    modules = set(loaded_after(*arguments))
    assert "sacm.cli.main" in modules
    assert modules.isdisjoint(HEAVY)


def test_help_names_every_command(sacm: Command) -> None:
    outcome = sacm("--help")
    assert outcome.code == 0
    assert all(name in outcome.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(sacm: Command, name: str) -> None:
    outcome = sacm(name, "--help")
    assert outcome.code == 0
    if name != "data":
        assert f"Example: sacm {name}" in outcome.out


@pytest.mark.parametrize("name", ["list", "info", "get"])
def test_data_commands_have_help_with_an_example(sacm: Command, name: str) -> None:
    outcome = sacm("data", name, "--help")
    assert outcome.code == 0
    assert f"Example: sacm data {name}" in outcome.out


def test_version(sacm: Command) -> None:
    outcome = sacm("--version")
    assert (outcome.code, outcome.out) == (0, f"sacm {package.__version__}\n")


def test_no_command_is_wrong_usage_but_helpful(sacm: Command) -> None:
    outcome = sacm()
    assert outcome.code == 2
    assert "Usage: sacm" in outcome.out + outcome.err
    assert "Error" not in outcome.err
