"""MiniROCKET's features against aeon's, which are adapted from the original code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.backbones.minirocket import MiniRocketConfig, Transform

pytestmark = pytest.mark.nightly  # aeon compiles its kernels on first use


@pytest.fixture(scope="module")
def their_transform():
    package = pytest.importorskip(
        "aeon.transformations.collection.convolution_based", reason="compares with aeon"
    )
    return package.MiniRocket


def series(cases: int, channels: int, length: int) -> np.ndarray:
    values = np.random.default_rng(3).normal(size=(cases, channels, length))
    return values.cumsum(axis=-1).astype(np.float32)


def assert_shares_agree(found: torch.Tensor, expected: np.ndarray, length: int) -> None:
    """Equal but for a few ties, which another order of summation may break."""
    difference = (found - torch.from_numpy(expected)).abs()
    assert difference.max() <= 2 / length
    assert (difference > 1e-5).float().mean() < 1e-3


def test_plan_of_dilations_and_multivariate_features(their_transform) -> None:
    """One test, so that one process alone compiles aeon's kernels."""
    for length, features in ((9, 10_000), (29, 10_000), (100, 2_000)):
        assert_same_plan(their_transform, length, features)
    for length in (29, 100):
        assert_same_features(their_transform, length)


def assert_same_plan(their_transform, length: int, features: int) -> None:
    theirs = their_transform(n_kernels=features, random_state=0).fit(series(2, 2, length))
    _, _, dilations, shares, _ = theirs.parameters
    ours = Transform(MiniRocketConfig(features=features), input_len=length, channels=2)
    assert list(ours.plan.items()) == list(zip(dilations.tolist(), shares.tolist(), strict=True))


def assert_same_features(their_transform, length: int) -> None:
    """With channels and biases carried over."""
    x = series(12, 5, length)
    theirs = their_transform(n_kernels=2_000, random_state=1).fit(x)
    counts, channels, _, _, biases = theirs.parameters
    ours = Transform(MiniRocketConfig(features=2_000), input_len=length, channels=5)
    mask = torch.zeros(len(counts), 5)
    for row, chosen in zip(mask, np.split(channels, counts.cumsum()[:-1]), strict=True):
        row[torch.from_numpy(chosen).long()] = 1
    ours.channel_mask.copy_(mask.reshape(ours.channel_mask.shape))
    ours.biases.copy_(torch.from_numpy(biases))
    found = ours(torch.from_numpy(x).transpose(1, 2))
    assert_shares_agree(found, theirs.transform(x), length)


def test_biases_fitted_on_one_univariate_series(their_transform) -> None:
    x = series(1, 1, 60)
    theirs = their_transform(n_kernels=1_000, random_state=2).fit(x)
    ours = Transform(MiniRocketConfig(features=1_000), input_len=60, channels=1)
    ours.fit(torch.from_numpy(x).transpose(1, 2), torch.Generator().manual_seed(0))
    np.testing.assert_allclose(ours.biases.numpy(), theirs.parameters[-1], rtol=1e-4, atol=1e-4)
