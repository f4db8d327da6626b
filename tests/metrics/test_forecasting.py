from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, mean_squared_error

from sacm.errors import ArgumentError, DataError, SACMError
from sacm.metrics.forecasting import ForecastAccumulator


def batches(windows=23, horizon=4, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (windows, horizon, channels)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def report_of(prediction, target, *, size=64, scale=None):
    errors = ForecastAccumulator(scale=scale)
    for start in range(0, len(prediction), size):
        errors.update(prediction[start : start + size], target[start : start + size])
    return errors.compute()


def test_agrees_with_scikit_learn_scaled_and_raw():
    prediction, target = batches()
    mean, std = np.array([3.0, -1.0, 0.5]), np.array([2.0, 0.1, 40.0])
    report = report_of(prediction, target, scale=std)
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
        assert table.step_mse == pytest.approx(((a - b) ** 2).mean(axis=(0, 2)))
    assert (report.windows, report.horizon, report.channels) == (23, 4, 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 41), st.integers(0, 2**31))
def test_the_batch_size_does_not_matter(windows, size, seed):
    prediction, target = batches(windows=windows, seed=seed)
    at_once, in_parts = report_of(prediction, target), report_of(prediction, target, size=size)
    assert in_parts.windows == windows
    assert in_parts.scaled.mae == pytest.approx(at_once.scaled.mae, rel=1e-13)
    assert in_parts.scaled.mse == pytest.approx(at_once.scaled.mse, rel=1e-13)
    assert in_parts.scaled.step_mse == pytest.approx(at_once.scaled.step_mse, rel=1e-13)


def test_small_errors_survive_many_large_sums():
    """float32 sums would stop growing; 2^24 + 1 = 2^24 there."""
    errors = ForecastAccumulator()
    errors.update(torch.full((1, 1, 1), 2.0**24), torch.zeros(1, 1, 1))
    for _ in range(8):
        errors.update(torch.ones(1, 1, 1), torch.zeros(1, 1, 1))
    assert errors.compute().scaled.mae * 9 == pytest.approx(2**24 + 8, abs=1e-6)


def test_merging_parts_equals_seeing_all():
    prediction, target = batches()
    left, right = ForecastAccumulator(), ForecastAccumulator()
    left.update(prediction[:9], target[:9])
    right.update(prediction[9:], target[9:])
    left.merge(right)
    left.merge(ForecastAccumulator())
    assert left.compute().scaled.mse == pytest.approx(report_of(prediction, target).scaled.mse)
    assert left.windows == 23


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
    report = report_of(*batches(), scale=[1.0, 2.0, 3.0])
    loaded = json.loads(json.dumps(report.to_dict()))
    assert loaded["raw"]["mae"] == report.raw.mae
    assert report_of(*batches()).raw is None


def test_bad_input_is_refused():
    errors = ForecastAccumulator(scale=[1.0, 2.0])
    with pytest.raises(SACMError, match="no window"):
        errors.compute()
    with pytest.raises(ArgumentError, match="share one shape"):
        errors.update(torch.zeros(2, 3, 2), torch.zeros(2, 3, 1))
    with pytest.raises(ArgumentError, match="scale has 2 channels"):
        errors.update(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
    fresh = ForecastAccumulator()
    fresh.update(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
    with pytest.raises(ArgumentError, match="changed"):
        fresh.update(torch.zeros(2, 5, 4), torch.zeros(2, 5, 4))
    with pytest.raises(ArgumentError, match="positive"):
        ForecastAccumulator(scale=[1.0, 0.0])
