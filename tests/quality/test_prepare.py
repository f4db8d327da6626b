"""Data sets repaired for training: no look ahead, no touch of what is tested."""

from __future__ import annotations

import numpy as np

from sacm.data import AnomalyData, forecasting_data
from sacm.quality.guard import Guard
from sacm.strategies.guard import repair_for_training


def make_rows(rows: int = 1200, channels: int = 2, seed: int = 0) -> np.ndarray:
    """Daily waves with noise, `[T, C]`."""
    time = np.arange(rows)[:, None] + np.arange(channels) * 5
    noise = np.random.default_rng(seed).normal(0, 0.1, (rows, channels))
    return (np.sin(2 * np.pi * time / 24) + noise).astype(np.float32)


def break_rows(values: np.ndarray, *places: int) -> np.ndarray:
    """The same with a sensor stuck for forty rows from each place on."""
    broken = values.copy()
    for place in places:
        broken[place : place + 40, 0] = broken[place, 0]
    return broken


def test_training_and_validation_rows_are_repaired_and_test_rows_are_not() -> None:
    clean = make_rows()
    data = forecasting_data(break_rows(clean, 200, 900, 1100), name="x")
    repaired, share = repair_for_training(data, Guard(window=None).fit(data))
    assert share > 0.02
    test = data.splits.test.start
    np.testing.assert_array_equal(repaired.values[test:], data.values[test:])
    for rows in (slice(201, 240), slice(901, 940)):
        error = np.abs(repaired.values[rows, 0] - clean[rows, 0]).mean()
        assert error < 0.3 * np.abs(data.values[rows, 0] - clean[rows, 0]).mean()
    assert (repaired.observed[201:240, 0] < 1).all()
    normal = repaired.observed == 1
    np.testing.assert_array_equal(repaired.values[normal], data.values[normal])


def test_later_splits_change_nothing_before_them() -> None:
    values = break_rows(make_rows(), 200, 900)
    data = forecasting_data(values, name="x")
    changed = values.copy()
    changed[data.splits.test.start :] = 99.0
    other = forecasting_data(changed, name="x")
    found = [repair_for_training(each, Guard(window=None).fit(each))[0] for each in (data, other)]
    stop = data.splits.test.start
    np.testing.assert_array_equal(found[0].values[:stop], found[1].values[:stop])
    changed[data.splits.val.start :] = 99.0
    other = forecasting_data(changed, name="x")
    later = repair_for_training(other, Guard(window=None).fit(other))[0]
    stop = data.splits.val.start
    np.testing.assert_array_equal(found[0].values[:stop], later.values[:stop])


def test_anomalies_of_the_test_part_are_never_repaired() -> None:
    train, test = break_rows(make_rows(), 300), break_rows(make_rows(400, seed=1), 100)
    data = AnomalyData("x", train, test, np.zeros(400, np.uint8), ("0", "1"))
    repaired = repair_for_training(data, Guard(window=None).fit(data))[0]
    np.testing.assert_array_equal(repaired.test, test)
    assert (repaired.train[310:330, 0] != train[310:330, 0]).all()
