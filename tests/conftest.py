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
    "inject/test_layout_huggingface.py",
    "inject/test_layout_neuralforecast.py",
    "integrations",
    "paper",
    "parity",
    "quality/test_guard.py",
    "reports",
    "robust",
    "tasks/test_base.py",
    "training/test_trainer.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` names as slow."""
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here).as_posix()
        if any(path == name or path.startswith(f"{name}/") for name in SLOW):
            item.add_marker(pytest.mark.slow)
