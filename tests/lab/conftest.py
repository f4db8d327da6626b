"""Stand-in data, and the command line, shared with other tests."""

from __future__ import annotations

from tests.cli.conftest import sacm
from tests.experiments.conftest import stand_in, stand_in_folder

__all__ = ["sacm", "stand_in", "stand_in_folder"]
