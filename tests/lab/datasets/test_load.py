from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm.data.load import find, names_file, resolve
from sacm.errors import ArgumentError, DataError

from . import layouts


def test_sacm_data_comes_before_the_cache(tmp_path: Path, monkeypatch, own_cache):
    layouts.table(own_cache / "ETTh1.csv", np.ones((30, 7)))
    assert sacm.data.load("ETTh1").values[0, 0] == 1
    layouts.table(tmp_path / "mine" / "ETTh1.csv", np.zeros((30, 7)))
    monkeypatch.setenv("SACM_DATA", str(tmp_path / "mine"))
    assert sacm.data.load("etth1").values[0, 0] == 0
    assert find("ETTh1").locate().place == "SACM_DATA"
    assert not find("PSM").present


@pytest.mark.parametrize(
    ("name", "level"), [("Synth-12", 0.5), ("synth12", 0.5), ("Synth-12@0.3", 0.3)]
)
def test_synth12_by_name(name, level):
    assert not names_file(name)
    np.testing.assert_array_equal(sacm.data.load(name).values, sacm.data.synth12(level).values)


@pytest.mark.parametrize("name", ["Synth-12@loud", "Synth-12@-1"])
def test_synth12_with_a_bad_level(name):
    with pytest.raises(ArgumentError, match="number of at least 0"):
        sacm.data.load(name)


def test_resolve_takes_names_and_files(tmp_path: Path):
    assert resolve("Synth-12", task="forecasting").name == "Synth-12@0.5"
    assert resolve("Synth-12@0.3", task="forecasting").name == "Synth-12@0.3"
    assert resolve("Synth-12@0.1", task="forecasting").name == "Synth-12@0.1"
    path = tmp_path / "mine.csv"
    layouts.table(path, np.random.default_rng(0).standard_normal((40, 2)))
    assert resolve(path, task="forecasting").name == "mine"
    assert resolve(str(path), task="anomaly").train.shape == (20, 2)
    with pytest.raises(DataError, match="There is no file"):
        resolve("missing.csv", task="forecasting")
    with pytest.raises(ArgumentError, match="data set for forecasting, not for anomaly"):
        resolve("Synth-12", task="anomaly")
    with pytest.raises(ArgumentError, match="Did you mean 'ETTh1'"):
        resolve("ETTh11", task="forecasting")
