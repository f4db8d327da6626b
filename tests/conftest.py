from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
import torch

# One thread: small tensors gain nothing from more, and tests may run side by side.
torch.set_num_threads(1)
hypothesis.settings.register_profile("sacm", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("sacm")

# Folders and files whose tests train, draw or start other programs: left out of daily work.
SLOW = (
    "cli/test_backtest.py",
    "cli/test_export.py",
    "cli/test_startup.py",
    "data/tables/test_odd_sources.py",
    "estimators",
    "examples",
    "experiments",
    "inference",
    "integrations",
    "paper",
    "parity",
    "quality/test_guard.py",
    "reports",
    "robust",
    "tasks/test_base.py",
    "training/test_trainer.py",
)


def is_slow(path: Path) -> bool:
    """Whether `SLOW` names a file, or the folder it is in."""
    place = path.relative_to(Path(__file__).parent).as_posix()
    return any(place == name or place.startswith(f"{name}/") for name in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone whose tests are not wanted: they import large libraries."""
    return True if "not slow" in config.option.markexpr and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` names as slow."""
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)
