from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.data import corrupt, synth12
from sacm.errors import ArgumentError
from sacm_lab.datasets.synth12 import add_layered_noise, clean_series

X = np.random.default_rng(0).standard_normal((20_000, 2)) * [1.0, 50.0] + [0.0, 7.0]


def test_gaussian_noise_has_the_level_of_each_channel():
    noise = corrupt(X, "gaussian", 0.3, seed=1) - X
    np.testing.assert_allclose(noise.std(axis=0) / X.std(axis=0), 0.3, rtol=0.03)


def test_student_noise_has_heavier_tails_than_gaussian():
    x = X[:, :1]
    gaussian, student = (
        np.abs(corrupt(x, kind, 0.3, seed=1) - x) for kind in ("gaussian", "student_t")
    )
    assert (student > 1.5).mean() > 20 * (gaussian > 1.5).mean()


def test_missing_sets_a_share_to_zero_and_leaves_the_rest():
    worse = corrupt(X, "missing", 0.2, seed=1)
    assert (worse == 0).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(worse[worse != 0], X[worse != 0])


def test_layered_is_that_of_synth12():
    clean = clean_series()
    ours = corrupt(clean, "layered", 0.5, seed=43)
    np.testing.assert_allclose(ours, add_layered_noise(clean, 0.5), atol=1e-5)


@pytest.mark.parametrize("kind", ["gaussian", "student_t", "missing", "layered"])
def test_same_seed_same_noise_and_level_zero_changes_nothing(kind):
    series = X[:500]
    first, again, other = (corrupt(series, kind, 0.4, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_allclose(corrupt(series, kind, 0.0), series, rtol=1e-12)


def test_kind_and_shape_of_the_input_stay():
    tensor = torch.randn(3, 50, 2)
    assert corrupt(tensor, "gaussian", 0.1).shape == tensor.shape
    assert corrupt(tensor, "gaussian", 0.1).dtype == torch.float32
    rough = corrupt(tensor.bfloat16(), "gaussian", 0.1)
    assert rough.dtype == torch.bfloat16
    assert (rough != tensor.bfloat16()).any()
    assert corrupt(np.arange(20), "missing", 0.1).shape == (20,)
    assert corrupt(np.ones(9, np.float32), "gaussian", 0.1).dtype == np.float32


def test_a_data_set_keeps_its_clean_values_as_targets():
    data = synth12(0.0)
    worse = corrupt(data, "gaussian", 0.3, seed=0)
    np.testing.assert_array_equal(worse.clean, data.values)
    assert (worse.values != data.values).all()


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="no fault 'salt'"):
        corrupt(X, "salt", 0.1)
    with pytest.raises(ArgumentError, match=r"missing must be in 0 … 1, got 1.5"):
        corrupt(X, "missing", 1.5)
    with pytest.raises(ArgumentError, match="a tensor or ForecastingData, not list"):
        corrupt([1.0, 2.0])
    for nothing in (np.array(1.0), torch.tensor(1.0)):
        with pytest.raises(ArgumentError, match=r"takes numbers \[T\] or \[..., C\]"):
            corrupt(nothing)
    with pytest.raises(ArgumentError, match="takes numbers"):
        corrupt(np.array(["a", "b"]))
    with pytest.raises(ArgumentError, match="layered needs a series"):
        corrupt(torch.randn(2, 30, 1), "layered", 0.3)


def test_targets_may_be_corrupted_like_the_inputs():
    data = synth12(0.0)
    worse = corrupt(data, "missing", 0.2, seed=1, targets="same")
    assert worse.targets is None
    assert (worse.values != data.values).any()
    with pytest.raises(ArgumentError, match="clean or same, got 'none'"):
        corrupt(data, "missing", 0.2, targets="none")


@pytest.mark.lab  # a mix of its faults
def test_values_that_are_gone_are_interpolated_and_not_observed():
    data = synth12(0.0)
    worse = corrupt(data, "all", 0.3, seed=1, targets="same")
    assert np.isfinite(worse.values).all()
    assert 0.02 < 1 - worse.observed.mean() < 0.06  # a seventh of the share


@pytest.mark.lab
def test_faults_of_series_are_corruptions_too():
    stuck = corrupt(X[:2000], "stuck", 0.2, seed=1)
    assert 0.15 < (np.diff(stuck, axis=0) == 0).mean() < 0.25
    with pytest.raises(ArgumentError, match=r"level of stuck must be in 0 … 1, got 3"):
        corrupt(X, "stuck", 3)
    with pytest.raises(ArgumentError, match=r"stuck needs a series"):
        corrupt(torch.randn(4, 50, 2), "stuck", 0.1)
