"""Every real data set that is there: documented shape, split sizes and window counts."""

from __future__ import annotations

import numpy as np
import pytest

import sacm.data
from sacm.data import anomaly_windows, classification_windows, forecasting_windows
from sacm.errors import DataError
from sacm_lab.datasets.catalogue import PUBLIC
from sacm_lab.datasets.public import borders


def entries(task: str):
    return [dataset for dataset in PUBLIC.values() if dataset.task == task]


def present(name: str):
    try:
        return sacm.data.load(name, download=False)
    except DataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("entry", entries("forecasting"), ids=lambda entry: entry.name)
def test_forecasting(real_data, entry):
    data = present(entry.name)
    assert data.values.shape == (entry.benchmark_rows, entry.channels)
    assert data.values.dtype == np.float32
    assert np.isfinite(data.values).all()
    assert len(data.columns) == entry.channels
    assert (data.timestamps is None) == (entry.frequency is None)
    assert data.notes == entry.facts
    for horizon in entry.horizons:
        windows = forecasting_windows(data, input_len=entry.input_len, horizon=horizon)
        for part, rows in zip(windows, data.splits, strict=True):
            assert len(part) == len(rows) - entry.input_len - horizon + 1


def test_weather_faults(real_data):
    data = present("Weather")
    faults = data.values == -9999
    assert (faults.sum(), faults.any(axis=1).sum()) == (81, 80)


@pytest.mark.parametrize("entry", entries("classification"), ids=lambda entry: entry.name)
def test_classification(real_data, entry):
    data = present(entry.name)
    train, test = entry.cases or (len(data.X_train), len(data.X_test))
    assert data.X_train.shape == (train, entry.channels, data.lengths_train.max())
    assert data.X_test.shape == (test, entry.channels, data.length)
    shortest = min(data.lengths_train.min(), data.lengths_test.min())
    assert shortest == entry.lengths[0]
    assert data.length <= entry.lengths[1]
    assert len(data.classes) == entry.classes
    windows = classification_windows(data)
    assert len(windows.train) + len(windows.val) == train
    assert len(windows.test) == test
    batch = windows.test.batch(np.arange(4))
    assert batch.x.isfinite().all()
    assert batch.mask.sum(dim=1).tolist() == data.lengths_test[:4].tolist()


@pytest.mark.parametrize("entry", entries("anomaly"), ids=lambda entry: entry.name)
def test_anomaly(real_data, entry):
    data = present(entry.name)
    known = [b for b in borders(entry.name) if b.name in {s.name for s in data.segments}]
    absent = len(borders(entry.name)) - len(known)
    assert absent == (4 if entry.name == "SMD" else 0)
    assert data.train.shape == (sum(b.train for b in known), entry.channels)
    assert data.test.shape == (sum(b.test for b in known), entry.channels)
    if not absent:
        assert (len(data.train), len(data.test)) == entry.rows
        assert data.labels.mean() == pytest.approx(entry.anomaly_rate, abs=5e-5)
    windows = anomaly_windows(data, length=100)
    assert len(windows.test) == sum(b.test - 99 for b in known)
    border = int(len(data.train) * 0.8)
    assert windows.train.starts.max() + 100 <= border <= windows.val.starts.min()


def test_shifted_channels(real_data):
    """The warning in the catalogue, checked."""
    for name in ("SelfRegulationSCP1", "SelfRegulationSCP2", "FingerMovements"):
        X = present(name).X_train
        channels = X.shape[1]
        np.testing.assert_array_equal(X[:, 1:, :-channels], X[:, :-1, channels:])


def test_libras_repeats(real_data):
    data = present("Libras")
    train = {case.tobytes() for case in data.X_train}
    test = {case.tobytes() for case in data.X_test}
    assert len(train & test) == 19
    assert len(data.X_train) - len(train) == 6
