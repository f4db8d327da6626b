"""Made-up benchmarks, and the command line, which is shared with other tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sacm_lab.grid import forget_data
from tests.cli.conftest import sacm
from tests.lab import stand_in as benchmarks

__all__ = ["sacm", "stand_in", "stand_in_folder"]


@pytest.fixture(scope="session")
def stand_in_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with made-up benchmarks."""
    folder = tmp_path_factory.mktemp("stand_in")
    benchmarks.write_all(folder)
    return folder


@pytest.fixture(scope="module")
def stand_in(stand_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The made-up benchmarks are what SACM_DATA names, and nothing else is on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACM_DATA", str(stand_in_folder))
        patch.setenv("SACM_CACHE", str(tmp_path_factory.mktemp("no_cache")))
        forget_data()
        yield stand_in_folder
    forget_data()
