from __future__ import annotations

import importlib.util
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
    "estimators",
    "examples",
    "experiments",
    "inference",
    "integrations",
    "lab/paper",
    "lab/robust",
    "lab/test_experiment.py",
    "lab/test_grid.py",
    "parity",
    "quality/test_guard.py",
    "reports",
    "tasks/test_base.py",
    "training/test_trainer.py",
)


# Tests of the lab, and of documentation that shows it.
LAB_TESTS = ("lab", "docs", "examples", "test_lab_is_a_plugin.py", "without_lab")


def is_slow(path: Path) -> bool:
    """Whether `SLOW` names a file, or the folder it is in."""
    place = path.relative_to(Path(__file__).parent).as_posix()
    return any(place == name or place.startswith(f"{name}/") for name in SLOW)


def lab_is_hidden() -> bool:
    """Whether `tests/without_lab` is on the path, as in `make library`."""
    try:
        return importlib.util.find_spec("sacm_lab") is None
    except ModuleNotFoundError:
        return True


LAB_HIDDEN = lab_is_hidden()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone whose tests are not wanted: they import large libraries, or the lab."""
    if LAB_HIDDEN and any(collection_path == Path(__file__).parent / name for name in LAB_TESTS):
        return True
    return True if "not slow" in config.option.markexpr and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` names as slow, and skip what needs the laboratory where it is hidden."""
    for item in items:
        if LAB_HIDDEN and item.get_closest_marker("lab"):
            item.add_marker(pytest.mark.skip(reason="needs the laboratory (sacm_lab)"))
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)
