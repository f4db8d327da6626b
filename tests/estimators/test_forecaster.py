from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sacm import DataError, Forecaster
from sacm.data import forecasting_data
from sacm.data.covariates import stamp_features
from sacm.errors import ArgumentError
from tests.estimators.cases import waves

LENGTH, HORIZON = 12, 4


def small(**parameters: Any) -> Forecaster:
    defaults = {"size": "small", "epochs": 1, "input_len": LENGTH, "horizon": HORIZON}
    return Forecaster("iTransformer", **{**defaults, **parameters})


def frame(rows: int = 200, frequency: str = "h") -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq=frequency)
    return pd.DataFrame(waves(rows), columns=["a", "b"]).assign(date=stamps)


@pytest.fixture(scope="module")
def fitted() -> Forecaster:
    return small(epochs=2).fit(frame())


def test_forecast_is_the_network_on_the_last_rows(fitted: Forecaster) -> None:
    values = frame()[["a", "b"]].to_numpy(dtype=np.float32)
    train = values[:140]
    mean, std = train.mean(axis=0), train.std(axis=0)
    x = torch.from_numpy((values[-LENGTH:] - mean) / std)[None]
    with torch.no_grad():
        expected = fitted.model_(x)[0].numpy() * std + mean
    forecast = fitted.predict()
    np.testing.assert_allclose(forecast[["a", "b"]].to_numpy(), expected, atol=1e-5)
    assert forecast["date"].tolist() == list(pd.date_range("2024-01-09 08:00", periods=4, freq="h"))


def test_given_history_is_what_counts(fitted: Forecaster) -> None:
    whole = frame()
    assert fitted.predict(whole).equals(fitted.predict())
    assert fitted.predict(whole[-LENGTH:])["a"].equals(fitted.predict()["a"])
    assert not fitted.predict(whole[:-1])["a"].equals(fitted.predict()["a"])


def test_chosen_columns_and_timestamp() -> None:
    table = frame().rename(columns={"date": "seen at"})
    forecast = small(time="seen at", columns=["b"]).fit(table).predict()
    assert list(forecast.columns) == ["seen at", "b"]


def test_history_of_another_step_is_refused(fitted: Forecaster) -> None:
    with pytest.raises(DataError, match="time step of 'D' but 'h' was trained on"):
        fitted.predict(frame(frequency="D"))


def test_weekdays_in_a_row_are_no_other_step() -> None:
    fitted = small(input_len=5, horizon=2).fit(frame(frequency="B"))
    week = frame(frequency="B")[:5]
    assert list(fitted.predict(week)["date"].dt.dayofweek) == [0, 1]


def test_short_training_data_are_refused() -> None:
    with pytest.raises(DataError, match=r"train split have 12 rows .* 12 \+ 4 = 16"):
        small().fit(frame(20))
    with pytest.raises(ArgumentError, match=r"split.* = 'a'"):
        small(split="a").fit(frame())


def test_evaluation_counts_every_window(fitted: Forecaster) -> None:
    test = frame(60)
    values = test[["a", "b"]].to_numpy(dtype=np.float32)
    errors = [
        fitted.predict(test[:end])[["a", "b"]].to_numpy() - values[end : end + HORIZON]
        for end in range(LENGTH, 60 - HORIZON + 1)
    ]
    found = fitted.evaluate(test)
    assert found["mae_raw"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    assert found["mse_raw"] == pytest.approx(np.square(errors).mean(), rel=1e-5)
    scaled = np.asarray(errors) / fitted.scaler_.std
    assert found["mae"] == pytest.approx(np.abs(scaled).mean(), rel=1e-5)
    with pytest.raises(DataError, match=r"has 15 rows but a window to test needs 16"):
        fitted.evaluate(test[:15])


def long_table() -> pd.DataFrame:
    parts = [
        frame(rows)[["date", "a"]]
        .rename(columns={"date": "ds", "a": "y"})
        .assign(unique_id=name, y=lambda part, scale=scale: part["y"] * scale)
        for name, rows, scale in (("north", 200, 1), ("south", 180, 3))
    ]
    return pd.concat(parts, ignore_index=True)


def test_several_series(tmp_path: Path) -> None:
    table = long_table()
    forecaster = small(strategy="raw").fit(table)
    forecast = forecaster.predict()
    assert forecast["unique_id"].tolist() == ["north"] * 4 + ["south"] * 4
    assert forecast["ds"].min() == pd.Timestamp("2024-01-08 12:00")
    north = table[table["unique_id"] == "north"]
    alone = forecaster.predict(north)
    np.testing.assert_allclose(alone["y"], forecast["y"][:4], rtol=1e-5)
    forecaster.save(tmp_path / "saved")
    assert Forecaster.load(tmp_path / "saved").predict(table).equals(forecast)
    lower, upper = forecaster.predict_interval(coverage=0.5)
    assert (lower["y"].lt(forecast["y"]) & upper["y"].gt(forecast["y"])).all()


def test_calendar_reaches_the_network(tmp_path: Path) -> None:
    table = frame()
    forecaster = Forecaster(
        "Informer",
        size="small",
        epochs=1,
        input_len=LENGTH,
        horizon=HORIZON,
        overrides={"encoder_layers": 1, "factor": 99},  # every key attended to: nothing sampled
    ).fit(table)
    stamps = pd.date_range(table["date"].iloc[-LENGTH], periods=LENGTH + HORIZON, freq="h")
    values = table[["a", "b"]].to_numpy(dtype=np.float32)[-LENGTH:]
    x = torch.from_numpy(forecaster.scaler_.transform(values))[None]
    with torch.no_grad():
        scaled = forecaster.model_(x, torch.from_numpy(stamp_features(stamps.to_numpy()))[None])
    expected = forecaster.scaler_.inverse(scaled[0].numpy())
    np.testing.assert_allclose(forecaster.predict()[["a", "b"]], expected, atol=1e-5)
    with pytest.raises(ArgumentError, match="no times, but the network was trained with"):
        forecaster.predict(table[["a", "b"]])
    forecaster.save(tmp_path / "saved")
    loaded = Forecaster.load(tmp_path / "saved")
    assert loaded.predict(table).equals(forecaster.predict())


def test_files_and_containers(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    frame().to_csv(path, index=False)
    from_file = small().fit(path).predict()
    from_frame = small().fit(frame()).predict()
    assert from_file["date"].tolist() == from_frame["date"].tolist()
    np.testing.assert_allclose(from_file["a"], from_frame["a"], atol=1e-5)
    data = forecasting_data(frame(), split=(0.7, 0.1, 0.2))
    assert small().fit(data).predict()["a"].tolist() == from_frame["a"].tolist()


@pytest.mark.lab
def test_denoising_strategy_acts_in_prediction() -> None:
    values = waves(noise=1.0)
    forecaster = small(strategy="hard_denoise(keep=0.2)").fit(values)
    x = torch.from_numpy(forecaster.scaler_.transform(values[-LENGTH:].astype(np.float32)))[None]
    spectrum = torch.fft.rfft(x, dim=1)
    kept = torch.zeros_like(spectrum)
    largest = spectrum.abs().argmax(dim=1, keepdim=True)
    kept.scatter_(1, largest, spectrum.gather(1, largest))
    with torch.no_grad():
        scaled = forecaster.model_(torch.fft.irfft(kept, n=LENGTH, dim=1))[0].numpy()
    np.testing.assert_allclose(forecaster.predict(), forecaster.scaler_.inverse(scaled), atol=1e-5)


def test_a_saved_forecaster_holds_no_rows_and_says_so(fitted: Forecaster, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    with pytest.raises(ArgumentError, match="holds no rows: give it the last ones"):
        Forecaster.load(tmp_path / "saved").predict()
