from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm.errors import ArgumentError
from sacm_lab.paper.figures.modes import dominant, trend_of


def by_hand(values: np.ndarray, count: int) -> np.ndarray:
    """The mean and the `count` strongest sinusoids, one after the other."""
    length, steps = len(values), np.arange(len(values))
    sinusoids = []
    for k in range(1, length // 2 + 1):
        wave = np.exp(-2j * np.pi * k * steps / length)
        weight = (values * wave).sum() / length
        double = 1 if 2 * k == length else 2
        sinusoids.append((abs(weight), double * (weight * wave.conj()).real))
    strongest = sorted(sinusoids, key=lambda pair: -pair[0])[:count]
    return values.mean() + sum(wave for _, wave in strongest)


@pytest.mark.parametrize("length", [60, 61])
def test_the_rebuilt_series_is_that_of_a_loop_over_sinusoids(length):
    values = 3 + np.random.default_rng(length).standard_normal(length)
    modes = dominant(values, 0.1)
    count = round(0.1 * (length // 2))
    assert modes.kept.sum() == count + 1
    np.testing.assert_allclose(modes.rebuilt, by_hand(values, count), atol=1e-12)


@pytest.mark.parametrize("detrend", ["none", "endpoint", "ols"])
def test_everything_kept_is_the_series_itself(detrend):
    values = np.random.default_rng(0).standard_normal(41)
    np.testing.assert_allclose(dominant(values, 1.0, detrend=detrend).rebuilt, values, atol=1e-12)


@given(st.integers(3, 80), st.floats(0.01, 1), st.integers(0, 99))
def test_what_is_kept_is_never_weaker_than_what_is_left(length, share, seed):
    modes = dominant(np.random.default_rng(seed).standard_normal(length), share)
    left = modes.amplitude[~modes.kept]
    assert modes.kept[0]
    assert left.size == 0 or left.max() <= modes.threshold
    assert modes.threshold == modes.amplitude[1:][modes.kept[1:]].min()


def test_a_line_is_all_trend():
    line = np.linspace(-2, 5, 30)
    for how in ("ols", "endpoint"):
        np.testing.assert_allclose(trend_of(line, how), line, atol=1e-12)
        np.testing.assert_allclose(dominant(line, 0.05, detrend=how).rebuilt, line, atol=1e-12)
    steps = np.arange(30)
    bent = line + np.random.default_rng(0).standard_normal(30)
    fit = np.polyval(np.polyfit(steps, bent, 1), steps)
    np.testing.assert_allclose(trend_of(bent, "ols"), fit, atol=1e-12)


@pytest.mark.parametrize(("length", "share"), [(2, 0.1), (10, 0.0), (10, 1.5)])
def test_what_cannot_be_rebuilt_is_refused(length, share):
    with pytest.raises(ArgumentError, match="three steps and a share"):
        dominant(np.ones(length), share)
