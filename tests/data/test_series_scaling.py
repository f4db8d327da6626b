"""A scale for every series: by its own training rows, and by nothing that is forecast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sacm.data import fingerprint, forecasting_data
from sacm.data.datasets import Splits
from sacm.data.scaling import ChannelScaler, cover_series, fit_scaler, new_series
from sacm.data.windows import forecasting_windows
from sacm.errors import ArgumentError

LEVELS = {"low": (0.0, 1.0), "high": (1e4, 50.0), "odd": (-3.0, 0.1)}


def panel(lengths: dict[str, int], **extra: tuple[float, float]) -> pd.DataFrame:
    """Series around their levels, an hour a row."""
    rng = np.random.default_rng(0)
    parts = []
    for name, rows in lengths.items():
        level, spread = {**LEVELS, **extra}.get(name, (5.0, 2.0))
        times = pd.date_range("2024", periods=rows, freq="h")
        values = level + spread * rng.normal(size=rows)
        parts.append(pd.DataFrame({"unique_id": name, "ds": times, "y": values}))
    return pd.concat(parts, ignore_index=True)


def test_every_series_has_mean_0_and_deviation_1_in_its_training_rows():
    table = panel({"low": 100, "high": 120, "odd": 90})
    data = forecasting_data(table)
    scaler = fit_scaler(data)
    assert scaler.series == ("low", "high", "odd")
    for place, (name, own) in enumerate(table.groupby("unique_id", sort=False)):
        train = own["y"].to_numpy()[: int(0.7 * len(own))]
        assert scaler.mean[place, 0] == pytest.approx(train.mean(), rel=1e-5), name
        assert scaler.std[place, 0] == pytest.approx(train.std(), rel=1e-5), name
    windows = forecasting_windows(data, input_len=6, horizon=2)
    batch = windows.train.batch(np.arange(len(windows.train)))
    for place in range(3):
        own = batch.x[batch.series == place]
        assert abs(float(own.mean())) < 0.1
        assert float(own.std()) == pytest.approx(1, abs=0.1)


def test_shared_scales_are_asked_for_and_are_those_of_before():
    table = panel({"low": 100, "high": 120})
    shared = forecasting_data(table, scaling="shared")
    assert shared.scaling is None
    assert fit_scaler(shared).series == ()
    assert fingerprint(shared) != fingerprint(forecasting_data(table))
    with pytest.raises(ArgumentError, match="scaling"):
        forecasting_data(table, scaling="each")
    one = panel({"low": 100})
    assert forecasting_data(one).scaling is None
    together = panel({"low": 100, "high": 100})  # channels side by side, each with its scale
    assert forecasting_data(together).scaling is None


def test_a_series_with_a_handful_of_rows_has_no_scale_of_its_own():
    data = forecasting_data(panel({"low": 100, "high": 120, "new": 7}))
    windows = forecasting_windows(data, input_len=6, horizon=2)
    assert windows.train.scaler.series == ("low", "high")


def test_an_unknown_series_is_scaled_by_what_comes_before_its_forecasts():
    trained = fit_scaler(forecasting_data(panel({"low": 100, "high": 120})))
    other = forecasting_data(panel({"low": 60, "new": 50}), split=(1.0, 0.0, 0.0))
    assert new_series(trained, other) == ["new"]
    values = other.values[other.last_rows(50)["new"]]
    whole = cover_series(trained, other, window=6)
    assert whole.series == ("low", "high", "new")
    assert whole.mean[2, 0] == pytest.approx(values.mean(), rel=1e-5)
    np.testing.assert_array_equal(whole.mean[:2], trained.mean)  # the known ones stay
    rows = range(len(other.values))
    tested = replace(other, splits=Splits(rows[:0], rows[:0], rows))
    assert cover_series(trained, tested, window=6).mean[2, 0] == pytest.approx(
        values[:6].mean(), rel=1e-5
    )


def test_a_record_of_it_can_be_read():
    scaler = fit_scaler(forecasting_data(panel({"low": 100, "high": 120})))
    again = ChannelScaler.from_dict(scaler.to_dict())
    assert again.series == scaler.series
    np.testing.assert_array_equal(again.std, scaler.std)
    with pytest.raises(ArgumentError, match="say of which series"):
        scaler.transform(np.zeros((2, 1)))


def test_series_in_rows_have_scales_of_their_own_too():
    rows = np.random.default_rng(0).normal(size=(3, 60)) + np.array([[0], [1000], [5]])
    table = pd.DataFrame(rows, columns=[f"V{i}" for i in range(60)])
    table.insert(0, "id", ["A", "B", "C"])
    assert forecasting_data(table, id="id").columns == ("A", "B", "C")  # channels have theirs
    table.iloc[1, 40:] = np.nan
    data = forecasting_data(table, id="id")
    assert fit_scaler(data).mean[:, 0] == pytest.approx([0, 1000, 5], abs=1)
