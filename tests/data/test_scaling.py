from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from sacm.data import ChannelScaler
from sacm.errors import ArgumentError, DataError

X = np.random.default_rng(0).normal([0, 1e4, -3], [1, 5, 0.01], (500, 3)).astype(np.float32)


def test_equals_scikit_learn():
    ours, theirs = ChannelScaler.fit([X]), StandardScaler().fit(X.astype(np.float64))
    np.testing.assert_allclose(ours.mean, theirs.mean_, rtol=1e-6)
    np.testing.assert_allclose(ours.std, theirs.scale_, rtol=1e-5)


def test_parts_make_no_difference():
    whole, pieces = ChannelScaler.fit([X]), ChannelScaler.fit([X[:100], X[100:101], X[101:]])
    np.testing.assert_allclose(pieces.mean, whole.mean, rtol=1e-7)
    np.testing.assert_allclose(pieces.std, whole.std, rtol=1e-6)


def test_padding_does_not_count():
    padded = np.concatenate([X, np.full((50, 3), np.nan, np.float32)])
    np.testing.assert_array_equal(ChannelScaler.fit([padded]).mean, ChannelScaler.fit([X]).mean)


@pytest.mark.parametrize("level", [0.0, 0.1, 1e6])
def test_a_constant_channel_has_deviation_one(level):
    scaler = ChannelScaler.fit([np.full((1000, 1), level, np.float32)])
    assert scaler.std[0] == 1


@pytest.mark.parametrize("unit", [1e-13, 1e-30])
def test_small_units_are_no_constants(unit):
    wave = np.sin(np.arange(1000.0))[:, None]
    scaler = ChannelScaler.fit([(unit * wave).astype(np.float32)])
    np.testing.assert_allclose(scaler.std, unit * wave.std(), rtol=1e-5)


def test_what_float32_cannot_divide_by_is_constant():
    scaler = ChannelScaler.fit([1e-42 * np.sin(np.arange(1000.0))[:, None]])
    assert scaler.std[0] == 1


def test_there_and_back_for_arrays_and_tensors():
    scaler = ChannelScaler.fit([X])
    np.testing.assert_allclose(scaler.inverse(scaler.transform(X)), X, rtol=1e-4)
    tensor = torch.from_numpy(X)
    torch.testing.assert_close(scaler.transform(tensor).numpy(), scaler.transform(X))
    assert scaler.inverse(torch.zeros(2, 5, 3)).shape == (2, 5, 3)


def test_record_round_trip():
    scaler = ChannelScaler.fit([X])
    again = ChannelScaler.from_dict(scaler.to_dict())
    np.testing.assert_array_equal(again.mean, scaler.mean)
    np.testing.assert_array_equal(again.std, scaler.std)


def test_errors():
    with pytest.raises(DataError, match="no training rows"):
        ChannelScaler.fit([])
    with pytest.raises(DataError, match="Channel 1 has no value"):
        ChannelScaler.fit([np.array([[1.0, np.nan]])])
    with pytest.raises(ArgumentError, match="3 channels but got 2"):
        ChannelScaler.fit([X]).transform(X[:, :2])
