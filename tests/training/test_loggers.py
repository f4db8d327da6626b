"""Loggers: what is asked of a user when a kind is unknown or its package is absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Neither the import system nor the package metadata know of what is absent.
WITHOUT_THEM = """
import sys
from importlib.machinery import PathFinder

ABSENT = ("tensorboard", "tensorboardX", "mlflow", "mlflow-skinny")

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in ABSENT
        return None if hidden else PathFinder.find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, context):
        return () if context.name in ABSENT else PathFinder.find_distributions(context)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]

from pathlib import Path
from sacm.errors import ArgumentError
from sacm.training.hardware import LOGGERS, make_logger

for kind in LOGGERS:
    try:
        make_logger(kind, Path(sys.argv[1]))
    except ArgumentError as error:
        print(error)
"""


@pytest.mark.nightly  # imports everything anew
def test_an_absent_package_is_named_with_the_extra_that_brings_it(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_THEM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "the tensorboard logger needs `pip install 'sacm[loggers]'`.",
        "the mlflow logger needs `pip install 'sacm[loggers]'`.",
    ]
