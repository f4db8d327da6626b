"""Gaps of a file reach the strategy, and nothing that was not measured is scored: a test a path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from sacm.data import forecasting_data, forecasting_windows, resolve
from sacm.data.scaling import fill_data, fill_gaps, fit_scaler
from sacm.training import Hardware

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
