from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm import Forecaster
from sacm.data import forecasting_data, forecasting_windows
from sacm.errors import ArgumentError
from sacm.estimators.intervals import absolute_residuals, conformal_radius


def test_radius_is_an_order_statistic() -> None:
    residuals = np.arange(1.0, 10.0).reshape(9, 1, 1)
    assert conformal_radius(residuals, 0.9).item() == 9  # ceil(10 · 0.9)
    assert conformal_radius(residuals, 0.85).item() == 9  # ceil(8.5)
    assert conformal_radius(residuals, 0.5).item() == 5
    assert conformal_radius(residuals[::-1], 0.5).item() == 5


def test_missing_targets_do_not_count() -> None:
    residuals = np.array([3.0, np.nan, 1.0, np.nan, 2.0]).reshape(5, 1, 1)
    assert conformal_radius(residuals, 0.5).item() == 2


def test_too_few_windows_are_refused() -> None:
    residuals = np.ones((9, 2, 1))
    with pytest.raises(ArgumentError, match=r"coverage of 0\.95 needs 19 validation windows but"):
        conformal_radius(residuals, 0.95)
    assert conformal_radius(np.ones((19, 2, 1)), 0.95).shape == (2, 1)
    for coverage in (0.0, 1.0, -1.0):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            conformal_radius(residuals, coverage)


@given(count=st.integers(20, 200), coverage=st.floats(0.05, 0.95), seed=st.integers(0, 2**32 - 1))
def test_coverage_of_exchangeable_residuals(count: int, coverage: float, seed: int) -> None:
    """Over all splits into n and one, the share covered is at least the coverage."""
    residuals = np.random.default_rng(seed).exponential(size=count + 1)
    covered = sum(
        residuals[i] <= conformal_radius(np.delete(residuals, i)[:, None, None], coverage).item()
        for i in range(count + 1)
    )
    assert covered / (count + 1) >= coverage - 1e-9
    assert covered / (count + 1) <= coverage + 2 / (count + 1)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """A wave under noise that grows with the channel."""
    time = np.arange(2400)[:, None]
    noise = np.random.default_rng(0).normal(size=(2400, 2)) * [0.3, 1.0]
    return (np.sin(2 * np.pi * time / [12, 24]) + noise).astype(np.float32)


@pytest.fixture(scope="module")
def fitted(values: np.ndarray) -> Forecaster:
    forecaster = Forecaster(
        "iTransformer",
        size="small",
        epochs=2,
        input_len=24,
        horizon=6,
        validation=0.5,
        learning_rate=1e-3,
    )
    return forecaster.fit(values[:1600])


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_new_values_are_covered(values: np.ndarray, fitted: Forecaster, coverage: float) -> None:
    data = forecasting_data(values[1600:], ratios=(1.0, 0.0, 0.0))
    windows = forecasting_windows(data, input_len=24, horizon=6, scaler=fitted.scaler_).train
    new = absolute_residuals(fitted.predictor_, windows)  # [N, H, C]
    interval = fitted.predict_interval(values[1600:], coverage=coverage)
    radius = (interval.upper - interval.lower) / 2 / fitted.scaler_.std
    covered = (new <= radius).mean(axis=0)  # each step and channel
    assert covered.mean() == pytest.approx(coverage, abs=0.03)
    assert np.abs(covered - coverage).max() < 0.08


def test_interval_encloses_the_forecast_and_grows_with_coverage(fitted: Forecaster) -> None:
    forecast = fitted.predict()
    narrow, wide = (fitted.predict_interval(coverage=c) for c in (0.5, 0.9))
    np.testing.assert_allclose((wide.lower + wide.upper) / 2, forecast, rtol=1e-5, atol=1e-5)
    assert (wide.upper - wide.lower > narrow.upper - narrow.lower).all()
    spread = (wide.upper - wide.lower).mean(axis=0)
    assert spread[1] > 2 * spread[0]  # the noisier channel
