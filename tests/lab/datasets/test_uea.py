from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm.data.cases import read_ts

from . import layouts

RANDOM = np.random.default_rng(0)


def cases(lengths: list[int], channels: int = 3):
    listed = [RANDOM.standard_normal((channels, length)) for length in lengths]
    return listed, [["no", "yes"][i % 2] for i in range(len(lengths))]


@pytest.mark.parametrize("name", ["CharacterTrajectories", "PEMS-SF"])
@pytest.mark.parametrize("layout", ["folder", "flat", "zip"])
def test_original_files(tmp_path: Path, name, layout):
    train, test = cases([7, 5, 9, 9]), cases([9, 4])
    place = {"folder": tmp_path / name, "flat": tmp_path, "zip": tmp_path / "unpacked"}[layout]
    layouts.ts_pair(place, name, train, test)
    if layout == "zip":
        layouts.zipped(place, tmp_path / f"{name}.zip", inside=f"{name}/")
    data = sacm.data.load(name, folder=tmp_path)
    assert data.X_train.shape == (4, 3, 9)
    assert data.lengths_train.tolist() == [7, 5, 9, 9]
    assert data.y_test.tolist() == ["no", "yes"]
    assert data.classes == ("no", "yes")
    np.testing.assert_allclose(data.X_train[0, :, :7], train[0][0], rtol=1e-4, atol=1e-5)
    assert np.isnan(data.X_train[0, :, 7:]).all()


def test_long_test_cases_are_cut_and_gaps_filled(tmp_path: Path):
    train, test = cases([6, 6]), cases([6, 11])
    train[0][0][1, 2] = np.nan
    layouts.ts_pair(tmp_path, "Libras", train, test)
    data = sacm.data.load("Libras", folder=tmp_path)
    assert data.X_test.shape == (2, 3, 6)
    assert data.lengths_test.tolist() == [6, 6]
    assert data.X_train[0, 1, 2] == pytest.approx(train[0][0][1, [1, 3]].mean(), abs=1e-4)
    assert "1 test cases were cut to the longest training case (6 steps)." in data.notes
    assert "1 missing values in the train cases were interpolated." in data.notes


def test_equals_aeon(tmp_path: Path):
    aeon = pytest.importorskip("aeon.datasets", reason="aeon is not installed")
    listed, labels = cases([8] * 5)
    path = tmp_path / "x_TRAIN.ts"
    path.write_text(layouts.ts_text("x", listed, labels))
    X, y = aeon.load_from_ts_file(str(path))
    ours = read_ts(path)
    np.testing.assert_allclose(np.stack(ours.values), X, rtol=1e-6)
    np.testing.assert_array_equal(ours.labels, y)
