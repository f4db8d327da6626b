"""Gaps of a file reach the strategy, and nothing that was not measured is scored: a test a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from sacm.data import forecasting_data, forecasting_windows, resolve
from sacm.data.scaling import fill_data, fill_gaps, fit_scaler
from sacm.inference import Predictor
from sacm.inference.backtest import backtest
from sacm.tasks import make_settings
from sacm.training import Hardware, train

ROWS, SHARE, STRETCH = 480, 0.1, 16
QUIET = Hardware(show_progress=False)


def make_frame() -> pd.DataFrame:
    """Hourly values of two channels, of which a tenth is missing in long stretches."""
    random = np.random.default_rng(0)
    hours = np.arange(ROWS)
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=ROWS, freq="h")})
    for name, level in (("load", 40.0), ("heat", 8.0)):
        frame[name] = level + 6 * np.sin(2 * np.pi * hours / 24) + random.normal(0, 0.3, ROWS)
        for start in random.choice(ROWS // STRETCH - 3, int(ROWS * SHARE / STRETCH), replace=False):
            frame.loc[start * STRETCH : (start + 1) * STRETCH - 1, name] = np.nan
    frame.loc[ROWS - 70 : ROWS - 55, "load"] = np.nan  # in the test rows
    return frame


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gaps.csv"
    make_frame().to_csv(path, index=False)
    return path


def make_run(file: Path, folder: Path, strategy: str) -> Any:
    settings = make_settings(
        task="forecasting",
        data=str(file),
        backbone="iTransformer",
        size="small",
        strategy=strategy,
        input_len=24,
        horizon=6,
        epochs=1,
        stride=4,
    )
    return train(settings, folder=folder, hardware=QUIET)


def test_a_reader_marks_gaps_and_fills_nothing(file: Path):
    data = resolve(file, task="forecasting")
    expected = make_frame()[["load", "heat"]].isna().to_numpy()
    np.testing.assert_array_equal(np.isnan(data.values), expected)
    assert data.observed is None


def test_prepared_data_are_finite_and_say_what_was_measured(file: Path):
    data = resolve(file, task="forecasting")
    filled, note = fill_data(data)
    assert np.isfinite(filled.values).all()
    np.testing.assert_array_equal(filled.observed, ~np.isnan(data.values))
    assert "were not measured" in note
    windows = forecasting_windows(filled, input_len=24, horizon=6)
    batch = windows.test.batch(np.arange(len(windows.test)))
    assert batch.x.isfinite().all()
    assert not batch.observed.all()


def test_scales_come_from_measured_rows_alone(file: Path):
    data = resolve(file, task="forecasting")
    train_rows = data.values[: data.splits.train.stop]
    scaler = fit_scaler(fill_data(data)[0])
    np.testing.assert_allclose(scaler.mean, np.nanmean(train_rows, axis=0), rtol=1e-5)
    np.testing.assert_allclose(scaler.std, np.nanstd(train_rows, axis=0), rtol=1e-5)


def test_nothing_is_filled_from_a_later_split():
    values = np.arange(100.0)[:, None]
    values[60:75] = np.nan  # across the border between training and validation rows at 70
    filled, _ = fill_data(forecasting_data(values))
    assert (filled.values[60:70] == 59).all()
    assert (filled.values[70:75] == 75).all()
    other = values.copy()
    other[75:] = 1e4
    np.testing.assert_array_equal(
        fill_data(forecasting_data(other))[0].values[:70], filled.values[:70]
    )


def test_a_column_without_values_before_or_in_a_piece():
    values = np.array([[np.nan, np.nan], [np.nan, np.nan], [5.0, np.nan]])
    assert fill_gaps(values, [range(2), range(2, 3)]).tolist() == [[5, 0], [5, 0], [5, 0]]


@pytest.mark.parametrize("strategy", ["raw", "guard"])
def test_train_and_evaluate(file: Path, tmp_path: Path, strategy: str):
    run = make_run(file, tmp_path / "runs", strategy)
    metrics = run.metrics.get("test", run.metrics)
    assert all(np.isfinite(value) for value in metrics.values() if isinstance(value, float))
    again = Predictor.load(run.folder).evaluate(resolve(file, task="forecasting"))
    assert all(np.isfinite(value) for value in again.row.values() if isinstance(value, float))


def test_unmeasured_targets_count_in_no_error(file: Path, tmp_path: Path):
    """Values in place of the gaps of test rows that are far off change no error."""
    data = resolve(file, task="forecasting")
    assert np.isnan(data.values[data.splits.test.start + 24 :]).any()
    filled, _ = fill_data(data)
    windows = forecasting_windows(filled, input_len=24, horizon=6)
    batch = windows.test.batch(np.arange(len(windows.test)))
    positions = batch.positions.numpy()[:, None] + 24 + np.arange(6)
    measured = ~np.isnan(data.values)[positions]
    np.testing.assert_array_equal(batch.observed.numpy(), measured)


@pytest.mark.filterwarnings("ignore::sacm.errors.SACMWarning")  # on what was repaired
@pytest.mark.parametrize("strategy", ["raw", "guard"])
def test_predict_and_backtest(file: Path, tmp_path: Path, strategy: str):
    predictor = Predictor.load(make_run(file, tmp_path / "runs", strategy).folder)
    ahead = predictor.predict(file)
    assert len(ahead) == 6
    assert np.isfinite(ahead[["load", "heat"]].to_numpy()).all()
    result = backtest(predictor, resolve(file, task="forecasting"), origins=4)
    errors = getattr(result, "metrics", None) or {}
    assert all(np.isfinite(value) for value in errors.values())


def test_forecaster():
    forecaster = sacm.Forecaster(
        "iTransformer", size="small", input_len=24, horizon=6, epochs=1, strategy="raw"
    )
    ahead = forecaster.fit(make_frame()).predict()
    assert np.isfinite(ahead[["load", "heat"]].to_numpy()).all()


def test_inputs_do_not_see_targets_through_a_gap_that_reaches_beyond_the_window() -> None:
    values = np.arange(60.0)[:, None].repeat(2, axis=1)
    values[20:30, 0] = np.nan
    data, note = fill_data(forecasting_data(values, name="ramp"))
    assert note is not None
    windows = forecasting_windows(data, input_len=8, horizon=4)
    start = int(np.flatnonzero(windows.train.starts == 16)[0])
    batch = windows.train.batch([start])  # rows 16 to 23: the gap begins at 20
    assert torch.equal(batch.x[0, 4:, 0], batch.x[0, 3, 0].expand(4))
    assert (batch.x[0, 1:, 1] > batch.x[0, :-1, 1]).all()
    inside = windows.train.batch([int(np.flatnonzero(windows.train.starts == 22)[0])])
    assert float(inside.x[0, 0, 0]) == 0.0  # rows 22 to 29: nothing was measured
