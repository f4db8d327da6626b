from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sacm.data import classification_data
from sacm.errors import DataError

RANDOM = np.random.default_rng(0)
LABELS = ["a", "b", "c", "a", "b", "c"]


def padded() -> np.ndarray:
    """Six cases `[N, C, L]` of which the first ends after 7 of 10 steps."""
    X = RANDOM.normal(size=(6, 2, 10))
    X[0, :, 7:] = np.nan
    return X


def archive(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "own.npz", X_train=padded(), y_train=LABELS, **arrays)
    return folder / "own.npz"


def test_an_archive_needs_no_lengths(tmp_path):
    path = archive(tmp_path, X_test=RANDOM.normal(size=(3, 2, 12)), y_test=["a", "b", "c"])
    found = classification_data(path)
    assert found.lengths_train.tolist() == [7, 10, 10, 10, 10, 10]
    assert found.lengths_test.tolist() == [10, 10, 10]
    assert found.X_test.shape == (3, 2, 10)
    assert found.notes == ("3 test cases were cut to the longest training case (10 steps).",)


def test_lengths_and_subjects_of_an_archive_are_kept(tmp_path):
    found = classification_data(
        archive(
            tmp_path,
            X_test=RANDOM.normal(size=(1, 2, 10)),
            y_test=["a"],
            len_train=[6, 10, 10, 10, 10, 10],
            len_test=[9],
            subject_train=[1, 1, 2, 2, 3, 3],
        )
    )
    assert (found.lengths_train[0], found.lengths_test[0]) == (6, 9)
    assert found.subjects_train is not None
    assert found.subjects_train.tolist() == [1, 1, 2, 2, 3, 3]


def test_arrays_lists_and_archives_are_the_same_data(tmp_path):
    X = padded()
    listed = [case[:, ~np.isnan(case).all(axis=0)] for case in X]
    np.savez(tmp_path / "own.npz", X_train=X, y_train=LABELS, X_test=X[:2], y_test=["a", "c"])
    found = classification_data(tmp_path / "own.npz")
    for one in (classification_data(X, LABELS), classification_data(listed, LABELS)):
        np.testing.assert_array_equal(one.X_train, found.X_train)
        assert one.classes == found.classes
        assert not len(one.X_test)


@pytest.mark.parametrize(
    ("shape", "labels", "message"),
    [
        ((2, 3, 10), ["a", "b"], "A test case has 3 channels, training has 2"),
        ((2, 2, 10), [0, 1], "training labels are <U1, test labels int64"),
        ((2, 2, 10, 1), ["a", "b"], r"test case 1 must be \[C, L\]"),
    ],
)
def test_a_test_part_that_does_not_fit(tmp_path, shape, labels, message):
    path = archive(tmp_path, X_test=RANDOM.normal(size=shape), y_test=labels)
    with pytest.raises(DataError, match=message):
        classification_data(path)
