from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sacm.data import (
    AnomalyData,
    WindowBatches,
    anomaly_windows,
    classification_windows,
    forecasting_data,
    forecasting_windows,
    synth12,
)
from sacm.data.cases import as_cases, case_arrays, from_padded
from sacm.data.datasets import TelemetrySegment
from sacm.data.scaling import fill_data
from sacm.errors import ArgumentError, DataError
from sacm.tasks import get_task, make_settings

RANDOM = np.random.default_rng(0)


def everything(windows):
    return windows.batch(np.arange(len(windows)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_changing_later_rows_changes_no_earlier_batch(seed):
    """The scaler, the gap filling and the windows of training see nothing of the other splits."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((200, 2)).astype(np.float32)
    values[random.random((200, 2)) < 0.1] = np.nan
    values[0] = 0
    data, _ = fill_data(forecasting_data(values))
    changed = values.copy()
    border = data.splits.test.start if seed % 2 else data.splits.val.start
    changed[border:] = random.standard_normal((200 - border, 2)) * 100
    before = forecasting_windows(data, input_len=5, horizon=3)
    other_data, _ = fill_data(forecasting_data(changed))
    after = forecasting_windows(other_data, input_len=5, horizon=3)
    unchanged = ("train", "val") if seed % 2 else ("train",)
    for split in unchanged:
        one, other = (everything(getattr(w, split)) for w in (before, after))
        torch.testing.assert_close(one.x, other.x, rtol=0, atol=0)
        torch.testing.assert_close(one.y, other.y, rtol=0, atol=0)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(60, 400),
    length=st.integers(1, 5),
    horizon=st.integers(1, 4),
)
def test_splits_never_share_a_row(rows, length, horizon):
    data = replace(forecasting_data(np.arange(rows, dtype=np.float32)), reach_back=False)
    if len(data.splits.val) < length + horizon:
        return
    windows = forecasting_windows(data, input_len=length, horizon=horizon)
    seen = [
        {start + step for start in part.starts for step in range(length + horizon)}
        for part in windows
    ]
    assert not seen[0] & seen[1]
    assert not seen[1] & seen[2]
    assert not seen[0] & seen[2]
    for part, split in zip(windows, data.splits, strict=True):
        assert len(part) == len(split) - length - horizon + 1


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(40, 300), length=st.integers(1, 20), horizon=st.integers(1, 4))
def test_inputs_of_own_series_reach_back_and_targets_never_do(rows, length, horizon):
    data = forecasting_data(np.arange(rows, dtype=np.float32))
    if len(data.splits.train) < length + horizon:
        return
    windows = forecasting_windows(data, input_len=length, horizon=horizon)
    for part, split in zip(windows, data.splits, strict=True):
        targets = [int(start) + length + step for start in part.starts for step in range(horizon)]
        assert set(targets) <= set(split)
    assert len(windows.val) == len(data.splits.val) - horizon + 1
    assert len(windows.test) == len(data.splits.test) - horizon + 1


def test_twelve_years_of_months_can_be_forecast_twelve_months_ahead():
    data = forecasting_data(np.arange(144.0))
    windows = forecasting_windows(data, input_len=24, horizon=12)
    assert [len(part) for part in windows] == [65, 3, 19]


@pytest.mark.lab
def test_synth12_has_noisy_inputs_and_clean_targets_on_the_noisy_scale():
    data = synth12(0.5)
    batch = forecasting_windows(data, input_len=96, horizon=96).val.batch([0, 7])
    train = data.values[:20_160].astype(np.float64)
    start = data.splits.val.start
    x = (data.values[start : start + 96] - train.mean()) / train.std()
    y = (data.clean[start + 96 : start + 192] - train.mean()) / train.std()
    np.testing.assert_allclose(batch.x[0].numpy(), x, atol=1e-5)
    np.testing.assert_allclose(batch.y[0].numpy(), y, atol=1e-5)


def test_another_scaler_for_transfer():
    source, target = (forecasting_data(RANDOM.normal(m, s, (300, 1))) for m, s in ((0, 1), (5, 9)))
    scaler = forecasting_windows(source, input_len=4, horizon=2).train.scaler
    batch = forecasting_windows(target, input_len=4, horizon=2, scaler=scaler).test.batch([0])
    start = target.splits.test.start - 4
    raw = scaler.inverse(batch.x)[0].numpy()
    np.testing.assert_allclose(raw, target.values[start : start + 4], rtol=1e-4)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5, 0.75, 1.0])
def test_training_fraction_takes_the_first_windows_and_fits_on_them(fraction):
    data = forecasting_data(RANDOM.standard_normal((966, 2)).astype(np.float32))
    whole = forecasting_windows(data, input_len=24, horizon=24)
    asked = make_settings(task="forecasting", data="rows", train_fraction=fraction)
    settings = asked.model_copy(update={"input_len": 24, "horizon": 24})
    part = get_task("forecasting").windows(settings, data)
    assert len(part.train) == int(len(whole.train) * fraction)
    assert len(part.val) == len(whole.val)
    last = int(part.train.starts[-1]) + 48
    np.testing.assert_allclose(part.train.scaler.mean, data.values[:last].mean(axis=0), atol=1e-6)


def test_stride_thins_training_only():
    data = forecasting_data(np.arange(200, dtype=np.float32))
    thin = forecasting_windows(data, input_len=4, horizon=2, stride=3)
    assert np.diff(thin.train.starts).tolist() == [3] * (len(thin.train) - 1)
    assert np.diff(thin.test.starts).tolist() == [1] * (len(thin.test) - 1)


def test_validation_stride_thins_validation_only():
    data = forecasting_data(np.arange(300.0))
    every = forecasting_windows(data, input_len=12, horizon=4)
    thin = forecasting_windows(data, input_len=12, horizon=4, validation_stride=5)
    assert len(thin.train) == len(every.train)
    assert len(thin.test) == len(every.test)
    kept = every.val.batch(np.arange(0, len(every.val), 5))
    assert torch.equal(everything(thin.val).positions, kept.positions)
    assert torch.equal(everything(thin.val).y, kept.y)


def test_forecasting_errors():
    data = forecasting_data(np.arange(100, dtype=np.float32))
    with pytest.raises(DataError, match=r"train split have 70 rows .* need 69 \+ 3 = 72"):
        forecasting_windows(data, input_len=69, horizon=3)
    with pytest.raises(ArgumentError, match="horizon and strides must be at least 1"):
        forecasting_windows(data, input_len=4, horizon=0)
    with pytest.raises(ArgumentError, match="no timestamps"):
        forecasting_windows(data, input_len=4, horizon=2, stamps=True)


@pytest.fixture
def cases():
    lengths = RANDOM.integers(4, 11, 60)
    X = [RANDOM.normal(3, 2, (2, n)) for n in lengths]
    y = np.repeat(["b", "a", "c"], 20)
    test = as_cases(X[45:], y[:15], "data", "test")
    arrays = case_arrays(as_cases(X[:45], y[:45], "data", "training"), test)
    return from_padded(arrays, "data"), X, lengths


def test_classification_batches_carry_mask_and_codes(cases):
    data, X, lengths = cases
    windows = classification_windows(data)
    assert len(windows.train) + len(windows.val) == 45
    batch = everything(windows.test)
    cut = np.minimum(lengths[45:], data.length)
    assert batch.mask.sum(dim=1).tolist() == cut.tolist()
    assert (batch.x[~batch.mask] == 0).all()
    assert batch.y.tolist() == [1] * 15
    scaled = windows.test.scaler.transform(X[45].T.astype(np.float32))[: data.length]
    np.testing.assert_allclose(batch.x[0, : cut[0]].numpy(), scaled, rtol=1e-4, atol=1e-5)


def test_classification_scaler_sees_the_training_part_alone(cases):
    data, X, _ = cases
    windows = classification_windows(data)
    chosen = np.concatenate([X[case].T for case in windows.train.starts])
    np.testing.assert_allclose(windows.train.scaler.mean, chosen.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(windows.train.scaler.std, chosen.std(axis=0), rtol=1e-4)


def test_a_test_label_unknown_in_training():
    X = np.zeros((4, 1, 3))
    labels = np.array(["a", "a", "b", "b"])
    arrays = {"X_train": X, "y_train": labels, "X_test": X[:1], "y_test": np.array(["z"])}
    data = from_padded(arrays, "data")
    with pytest.raises(DataError, match="label 'z'"):
        classification_windows(data)


@pytest.fixture
def telemetry() -> AnomalyData:
    sizes = {"one": (40, 33), "two": (25, 20), "three": (35, 47)}
    train = test = 0
    segments = []
    for name, (a, b) in sizes.items():
        segments.append(TelemetrySegment(name, range(train, train + a), range(test, test + b)))
        train, test = train + a, test + b
    values = RANDOM.standard_normal((200, 2)).astype(np.float32)
    return AnomalyData(
        name="plant",
        train=values[:100],
        test=values[100:],
        labels=np.zeros(100, np.uint8),
        columns=("0", "1"),
        segments=tuple(segments),
    )


@pytest.mark.parametrize("stride", [1, 4, 10])
def test_telemetry_windows_never_cross_a_border(telemetry, stride):
    windows = anomaly_windows(telemetry, length=10, stride=stride)
    inside = {
        "train": [segment.train for segment in telemetry.segments],
        "val": [segment.train for segment in telemetry.segments],
        "test": [segment.test for segment in telemetry.segments],
    }
    for name, part in windows._asdict().items():
        for start in part.starts:
            assert any(r.start <= start and start + 10 <= r.stop for r in inside[name])
    seen = {int(s) + step for s in windows.test.starts for step in range(10)}
    assert seen == set(range(100))


def test_telemetry_validation_is_the_last_fifth(telemetry):
    windows = anomaly_windows(telemetry, length=10)
    assert windows.train.starts.max() + 10 <= 80 <= windows.val.starts.min()
    np.testing.assert_allclose(
        windows.train.scaler.mean, telemetry.train[:80].mean(axis=0), atol=1e-6
    )


def test_telemetry_batches(telemetry):
    windows = anomaly_windows(telemetry, length=10)
    batches = list(WindowBatches(windows.test, 16))
    assert sum(len(batch.x) for batch in batches) == 24 + 11 + 38
    batch = batches[0]
    expected = windows.test.scaler.transform(telemetry.test[3:13])
    np.testing.assert_allclose(batch.x[3].numpy(), expected, rtol=1e-5)
    assert batch.positions[3] == 3


def test_telemetry_errors(telemetry):
    with pytest.raises(DataError, match="test segment two has 20 rows"):
        anomaly_windows(telemetry, length=30)
    only_train = replace(telemetry, segments=())
    with pytest.raises(DataError, match="longest training segment has 80 rows"):
        anomaly_windows(only_train, length=90)
