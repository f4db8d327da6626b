"""Errors of forecasts, relative ones, and seasons."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, mean_squared_error

from sacm.data import ChannelScaler
from sacm.errors import ArgumentError, DataError, SACMError
from sacm.metrics.forecasting import (
    ForecastAccumulator,
    calendar_season,
    naive_training_error,
    season_length,
)


def batches(windows=23, horizon=4, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (windows, horizon, channels)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def measured(mean, std, naive=None):
    """An accumulator of errors in these scales."""
    return ForecastAccumulator(
        ChannelScaler(mean, std), np.ones_like(std) if naive is None else naive
    )


def report_of(prediction, target, *, size=64, errors=None):
    errors = errors or ForecastAccumulator()
    for start in range(0, len(prediction), size):
        errors.update(prediction[start : start + size], target[start : start + size])
    return errors.compute()


def test_agrees_with_scikit_learn_scaled_and_raw():
    prediction, target = batches()
    mean, std = np.array([3.0, -1.0, 0.5]), np.array([2.0, 0.1, 40.0])
    report = report_of(prediction, target, errors=measured(mean, std))
    first, second = (x.double().numpy() for x in (prediction, target))
    for table, a, b in (
        (report.scaled, first, second),
        (report.raw, first * std + mean, second * std + mean),
    ):
        assert table.mae == pytest.approx(mean_absolute_error(a.ravel(), b.ravel()))
        assert table.mse == pytest.approx(mean_squared_error(a.ravel(), b.ravel()))
        assert table.rmse == pytest.approx(table.mse**0.5)
        assert table.channel_mae == pytest.approx(np.abs(a - b).mean(axis=(0, 1)))
        assert table.channel_mse == pytest.approx(((a - b) ** 2).mean(axis=(0, 1)))
        assert table.step_mae == pytest.approx(np.abs(a - b).mean(axis=(0, 2)))
    assert (report.windows, report.horizon, report.channels) == (23, 4, 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 41), st.integers(0, 2**31))
def test_the_batch_size_does_not_matter(windows, size, seed):
    prediction, target = batches(windows=windows, seed=seed)
    at_once, in_parts = report_of(prediction, target), report_of(prediction, target, size=size)
    assert in_parts.windows == windows
    assert in_parts.scaled.mae == pytest.approx(at_once.scaled.mae, rel=1e-13)
    assert in_parts.scaled.mse == pytest.approx(at_once.scaled.mse, rel=1e-13)
    assert in_parts.scaled.step_mae == pytest.approx(at_once.scaled.step_mae, rel=1e-13)


def test_small_errors_survive_many_large_sums():
    """float32 sums would stop growing; 2^24 + 1 = 2^24 there."""
    errors = ForecastAccumulator()
    errors.update(torch.full((1, 1, 1), 2.0**24), torch.zeros(1, 1, 1))
    for _ in range(8):
        errors.update(torch.ones(1, 1, 1), torch.zeros(1, 1, 1))
    assert errors.compute().scaled.mae * 9 == pytest.approx(2**24 + 8, abs=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_non_finite_prediction_is_a_failure_with_its_place(value):
    prediction, target = batches()
    prediction[20, 2, 1] = value
    with pytest.raises(SACMError, match="window 20, step 2, channel 1"):
        report_of(prediction, target, size=7)
    with pytest.raises(DataError, match=r"target is .* at window 20"):
        report_of(target, prediction, size=7)


def test_half_precision_and_gradients_are_accepted():
    prediction, target = batches()
    prediction = prediction.bfloat16().requires_grad_()
    expected = (prediction.detach().double() - target.double()).abs().mean()
    assert report_of(prediction, target).scaled.mae == pytest.approx(float(expected))


def test_the_report_is_json():
    report = report_of(*batches(), errors=measured(np.zeros(3), np.array([1.0, 2.0, 3.0])))
    loaded = json.loads(json.dumps(asdict(report)))
    assert loaded["raw"]["mae"] == report.raw.mae
    assert report_of(*batches()).raw is None


def test_bad_input_is_refused():
    errors = ForecastAccumulator()
    with pytest.raises(SACMError, match="no window"):
        errors.compute()
    with pytest.raises(ArgumentError, match="share one shape"):
        errors.update(torch.zeros(2, 3, 2), torch.zeros(2, 3, 1))


def test_the_three_measures_are_their_formulas() -> None:
    generator = np.random.default_rng(0)
    mean, std = np.array([3.0, -2.0]), np.array([2.0, 0.5])
    truth, forecast = generator.normal(size=(2, 6, 4, 2))
    seen = generator.random((6, 4, 2)) > 0.3
    naive = np.array([0.7, 0.2])
    errors = measured(mean, std, naive)
    for part in (slice(0, 2), slice(2, 6)):  # whatever the batches
        errors.update(
            torch.from_numpy(forecast[part]),
            torch.from_numpy(truth[part]),
            observed=torch.from_numpy(seen[part]),
        )
    found = errors.compute().relative
    mase, smape, wape = [], [], []
    for channel in range(2):
        keep = seen[:, :, channel]
        y = (truth[:, :, channel] * std[channel] + mean[channel])[keep]
        f = (forecast[:, :, channel] * std[channel] + mean[channel])[keep]
        mase.append(np.abs(y - f).mean() / naive[channel])
        smape.append((2 * np.abs(y - f) / (np.abs(y) + np.abs(f))).mean())
        wape.append(np.abs(y - f).sum() / np.abs(y).sum())
    assert found["mase"] == pytest.approx(np.mean(mase))
    assert found["smape"] == pytest.approx(np.mean(smape))
    assert found["wape"] == pytest.approx(np.mean(wape))


def test_a_channel_that_never_changes_has_no_mase_and_zeros_no_wape() -> None:
    zeros = torch.zeros(2, 3, 1)
    errors = measured(np.zeros(1), np.ones(1), np.zeros(1))
    errors.update(zeros, zeros)
    assert errors.compute().relative == {"mase": None, "smape": 0.0, "wape": None}


def test_the_naive_training_error_stays_inside_each_series() -> None:
    pieces = [np.array([[0.0], [1.0], [4.0]]), np.array([[100.0], [101.0]]), np.array([[7.0]])]
    assert naive_training_error(pieces, 1) == pytest.approx([(1 + 3 + 1) / 3])
    assert naive_training_error(pieces, 2) == pytest.approx([4.0])


@pytest.mark.parametrize(
    ("frequency", "season"),
    [("h", 24), ("15min", 96), ("D", 7), ("B", 5), ("W-SUN", 52), ("MS", 12), ("QE-DEC", 4)],
)
def test_a_time_step_has_its_season(frequency: str, season: int) -> None:
    assert calendar_season(frequency) == season
    assert season_length(np.zeros((500, 1)), frequency) == season


@pytest.mark.parametrize("frequency", [None, "7h", "3MS", "strange!"])
def test_other_steps_have_none_of_the_calendar(frequency: str | None) -> None:
    assert calendar_season(frequency) is None


@pytest.mark.parametrize("period", [5, 12, 37])
def test_a_period_is_found_under_noise_and_trend(period: int) -> None:
    time = np.arange(600)
    noise = np.random.default_rng(0).normal(size=(600, 2))
    wave = np.sin(2 * np.pi * time / period)[:, None] + 0.3 * noise + 0.02 * time[:, None]
    assert season_length(wave, None) == period


def test_noise_constants_and_short_rows_have_no_season() -> None:
    noise = np.random.default_rng(0).normal(size=(400, 1))
    assert season_length(noise, None) == 1
    assert season_length(np.ones((400, 2)), None) == 1
    assert season_length(np.ones((5, 2)), "h") == 1
