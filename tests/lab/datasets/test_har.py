from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm.data.datasets import split_cases
from sacm.errors import DataError

from . import layouts

FOLDER = "UCI HAR Dataset"


@pytest.mark.parametrize("layout", ["folder", "zip", "zip in a zip"])
def test_inertial_signals(tmp_path: Path, layout):
    top = tmp_path / "made" / FOLDER
    written = layouts.har(top, {"train": 8, "test": 4}, np.random.default_rng(0))
    folder = tmp_path / "made"
    if layout != "folder":
        folder = tmp_path / "packed"
        folder.mkdir()
        layouts.zipped(top, folder / f"{FOLDER}.zip", inside=f"{FOLDER}/")
    if layout == "zip in a zip":
        outer = tmp_path / "outer"
        outer.mkdir()
        layouts.zipped(folder, outer / "human+activity+recognition+using+smartphones.zip")
        folder = outer
    data = sacm.data.load("HAR", folder=folder)
    np.testing.assert_allclose(data.X_train, written["train"], rtol=1e-5)
    np.testing.assert_allclose(data.X_test, written["test"], rtol=1e-5)
    assert data.y_train[:2].tolist() == ["WALKING", "SITTING"]
    assert data.subjects_train.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    train, val = split_cases(data.y_train, data.subjects_train)
    assert not set(data.subjects_train[train]) & set(data.subjects_train[val])


def test_damage_is_named(tmp_path: Path):
    top = tmp_path / FOLDER
    layouts.har(top, {"train": 4, "test": 4}, np.random.default_rng(0))
    (top / "test" / "y_test.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match="4 windows, 2 labels and 4 subjects"):
        sacm.data.load("HAR", folder=tmp_path)
    signal = top / "train" / "Inertial Signals" / "body_gyro_z_train.txt"
    signal.write_text(signal.read_text()[:-100])
    with pytest.raises(DataError, match=r"body_gyro_z_train\.txt: lines differ in length"):
        sacm.data.load("HAR", folder=tmp_path)
