from __future__ import annotations

import numpy as np
import pytest

import sacm.data
from sacm.errors import ArgumentError
from sacm_lab.datasets.synth12 import add_layered_noise, clean_series

# level: SNR in dB, spectral flatness, mean squared error, as published
PUBLISHED = {
    0.1: ("23.7702", "0.007629", "0.004197"),
    0.3: ("16.5724", "0.023030", "0.022018"),
    0.5: ("12.3915", "0.046320", "0.057658"),
    0.7: ("9.5422", "0.075587", "0.111119"),
    0.9: ("7.3898", "0.108818", "0.182399"),
}


def series_flatness(values: np.ndarray) -> float:
    """Spectral flatness of a whole series: geometric over arithmetic mean of its power."""
    power = np.abs(np.fft.rfft(values)) ** 2 + 1e-10
    return float(np.exp(np.log(power).mean()) / power.mean())


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return clean_series()


@pytest.mark.parametrize("level", PUBLISHED)
def test_statistics_equal_the_published_ones_to_the_printed_digits(clean, level):
    noisy = add_layered_noise(clean, level)
    error = noisy - clean
    ratio = 10 * np.log10(clean.var() / error.var())
    printed = (f"{ratio:.4f}", f"{series_flatness(noisy):.6f}", f"{(error**2).mean():.6f}")
    assert printed == PUBLISHED[level]


def test_clean_flatness_and_hits(clean):
    assert f"{series_flatness(clean):.7f}" == "0.0029998"
    assert len(clean) == 33_600


def test_levels_share_their_draws(clean):
    """Where nothing was dropped, the corruption grows in proportion to the level."""
    low, high = add_layered_noise(clean, 0.2) - clean, add_layered_noise(clean, 0.4) - clean
    kept = (add_layered_noise(clean, 0.2) != 0) & (clean != 0)
    np.testing.assert_allclose(high[kept], 2 * low[kept], rtol=1e-9, atol=1e-12)


def test_data_set():
    data = sacm.data.synth12(sigma=0.3)
    assert data.values.shape == data.clean.shape == (33_600, 1)
    assert [len(rows) for rows in data.splits] == [20_160, 6_720, 6_720]
    assert data.timestamps is not None
    assert data.timestamps[1] - data.timestamps[0] == np.timedelta64(15, "m")
    silent = sacm.data.synth12(sigma=0)
    np.testing.assert_array_equal(silent.values, silent.clean)


def test_channels_have_their_own_seeds(clean):
    assert sacm.data.fingerprint(sacm.data.synth12(0.5)) == "423bf1af22853bc1"
    data = sacm.data.synth12(sigma=0.5, channels=2)
    np.testing.assert_array_equal(data.clean[:, 0], clean.astype(np.float32))
    np.testing.assert_array_equal(data.clean[:, 1], clean_series(142).astype(np.float32))
    second = add_layered_noise(clean_series(142), 0.5, 143)
    np.testing.assert_array_equal(data.values[:, 1], second.astype(np.float32))


@pytest.mark.parametrize("arguments", [{"sigma": -0.1}, {"sigma": float("nan")}, {"channels": 0}])
def test_bad_arguments(arguments):
    with pytest.raises(ArgumentError, match="must be at least"):
        sacm.data.synth12(**arguments)
