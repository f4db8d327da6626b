"""The simulated plant of the demo."""

from __future__ import annotations

import numpy as np

import sacm
from sacm.data import load
from sacm_lab.datasets.plant import plant


def test_the_same_every_time_and_by_name() -> None:
    np.testing.assert_array_equal(plant().values, load("plant").values)
    assert not np.array_equal(plant(1).values, plant().values)


def test_training_rows_are_broken_and_test_rows_are_not() -> None:
    data = plant()
    flags = sacm.inspect(data).flags > 0
    rows = data.splits
    assert flags[rows.train.start : rows.train.stop].mean() > 0.15
    assert flags[rows.test.start : rows.test.stop].mean() < 0.02
