from __future__ import annotations

import os
from pathlib import Path

import pytest

REAL_DATA = os.environ.get("SACM_DATA")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own empty cache and no data folder."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SACM_CACHE", str(cache))
    monkeypatch.delenv("SACM_DATA", raising=False)
    return cache


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with real copies of the benchmarks, which not everybody has."""
    if not REAL_DATA:
        pytest.skip("SACM_DATA is not set: no real data here")
    monkeypatch.setenv("SACM_DATA", REAL_DATA)
    return Path(REAL_DATA)
