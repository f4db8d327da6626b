"""The paper's tests share the made-up benchmarks and the command line of other parts."""

from __future__ import annotations

from tests.cli.conftest import sacm
from tests.experiments.conftest import stand_in, stand_in_folder

__all__ = ["sacm", "stand_in", "stand_in_folder"]
