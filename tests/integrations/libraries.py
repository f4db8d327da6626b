"""Libraries that write into the user's home when they are imported for the first time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

LOCK = Path(tempfile.gettempdir()) / "sacm-tests-import.lock"


def import_library(name: str) -> Any:
    """Import a library, one process at a time; skip the test if it is not installed.

    PyPOTS makes a configuration file in the home folder. A second process that imports it meanwhile
    reads half of that file, and fails.
    """
    with FileLock(LOCK):
        return pytest.importorskip(name, reason="needs the `integrations` extra")
