"""Commands that train nothing bring in none of what only training, figures or tuning need."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Example

# Never for a command that trains nothing.
TRAINING = {"lightning", "transformers", "torchmetrics", "sklearn", "optuna", "fastapi"}
TRAINING |= {"torch._dynamo", "torch._inductor", "torch.onnx", "matplotlib"}
READING = {"pandas", "pyarrow", "scipy"}
_CODE = """
import contextlib, io, json, sys
from sacm.cli.main import main

found = {}
for command in json.loads(sys.argv[1]):
    sys.argv = ["sacm", *command]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as left:
            assert not left.code, command
    found[" ".join(command[:2])] = sorted(sys.modules)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def modules(example: Example, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Modules that are there after each command; one process runs all, the lightest first."""
    commands = [
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["predict", "--help"],
        ["strategies"],
        ["score", str(example.series), "--window", "24"],
        ["predict", str(example.forecasting)],
        ["evaluate", str(example.forecasting)],
        ["predict", str(example.anomaly)],
        ["quality", str(example.series)],
    ]
    done = subprocess.run(
        [sys.executable, "-c", _CODE, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path_factory.mktemp("startup"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return {name: set(found) for name, found in json.loads(done.stdout).items()}


def test_help_waits_for_nothing(modules: dict[str, set[str]]) -> None:
    assert modules["predict --help"] & {"torch", "numpy", *TRAINING, *READING} == set()


def test_lists_need_no_tables(modules: dict[str, set[str]]) -> None:
    assert modules["strategies"] & {*TRAINING, *READING} == set()


def test_scores_forecasts_and_tests_need_pandas_at_the_most(
    modules: dict[str, set[str]], example: Example
) -> None:
    after = modules[f"evaluate {example.forecasting}"]
    assert after & {*TRAINING, "scipy"} == set()


def test_nothing_that_only_training_needs_is_ever_imported(
    modules: dict[str, set[str]], example: Example
) -> None:
    assert modules[f"quality {example.series}"] & TRAINING == set()
