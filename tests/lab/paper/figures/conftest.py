from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sacm.tasks import make_settings
from sacm.training import Hardware, train
from tests.lab.datasets import layouts

QUIET = Hardware(show_progress=False)


@pytest.fixture(autouse=True)
def without_bundled_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of all data at hand see those of a test alone."""
    monkeypatch.setattr("sacm_lab.datasets.public.BUNDLED", tmp_path / "none")


@pytest.fixture
def three_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with three of the nine sets: a calm, a noisier and a wild one."""
    random = np.random.default_rng(0)
    time = np.arange(600.0)[:, None]
    waves = np.sin(2 * np.pi * time / np.arange(20, 27))
    folder = tmp_path / "data"
    for name, noise in (("ETTh1", 0.05), ("ETTh2", 0.5), ("ETTm1", 5.0)):
        layouts.table(folder / f"{name}.csv", waves + noise * random.standard_normal((600, 7)))
    monkeypatch.setenv("SACM_DATA", str(folder))
    monkeypatch.setenv("SACM_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw and sacm with two gammas on Synth-12, trained for an epoch on a few windows."""
    folder = tmp_path_factory.mktemp("gallery")
    for strategy in ("raw", "sacm", "sacm(gamma=5)"):
        settings = make_settings(
            task="forecasting",
            data="Synth-12@0.1",
            backbone="iTransformer",
            size="small",
            strategy=strategy,
            input_len=24,
            horizon=12,
            stride=40,
            epochs=1,
            overrides={"width": 8, "hidden": 8},
        )
        train(settings, folder=folder / "deep" / "er", hardware=QUIET)
    return folder
