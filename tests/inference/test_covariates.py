"""Forecasts with covariates, from training to prediction, on every road."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm import Forecaster, Predictor
from sacm.data import ForecastingData, forecasting_data
from sacm.errors import ArgumentError, DataError
from sacm.inference.backtest import backtest
from sacm.inference.forecast import prepare_evaluation
from sacm.tasks import make_settings
from sacm.training import Hardware, Run, train
from tests.cli.conftest import Command, sacm

__all__ = ["sacm"]  # the fixture
ROWS, LENGTH, HORIZON = 240, 12, 4
SETTINGS = {
    "backbone": "iTransformer",
    "size": "small",
    "epochs": 1,
    "input_len": LENGTH,
    "horizon": HORIZON,
}
COVARIATES = {"past": ["wind"], "future": ["promo"]}


def make_frame(ahead: int = HORIZON, *, seed: int = 0) -> pd.DataFrame:
    """A series that follows a covariate, whose last rows hold that covariate alone."""
    random = np.random.default_rng(seed)
    promo = (random.random(ROWS) < 0.3).astype(float)
    frame = pd.DataFrame(
        {
            "date": pd.date_range("2024-01-01", periods=ROWS, freq="h"),
            "y": np.sin(np.arange(ROWS) / 4) + promo,
            "wind": random.normal(size=ROWS),
            "promo": promo,
        }
    )
    if ahead:
        frame.loc[ROWS - ahead :, ["y", "wind"]] = np.nan
    return frame


HISTORY = forecasting_data(make_frame(), past="wind", future="promo", split=(1.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run on a file with covariates."""
    folder = tmp_path_factory.mktemp("covariates")
    path = folder / "series.csv"
    make_frame().to_csv(path, index=False)
    settings = make_settings(task="forecasting", data=str(path), **SETTINGS, **COVARIATES)
    return train(settings, folder=folder, hardware=Hardware(show_progress=False))


@pytest.fixture(scope="module")
def predictor(run: Run) -> Predictor:
    return Predictor.load(run)


def test_known_future_values_reach_the_forecast(predictor: Predictor) -> None:
    changed = make_frame()
    changed.loc[ROWS - HORIZON :, "promo"] = 1 - changed["promo"]
    usual, other = predictor.predict(make_frame()), predictor.predict(changed)
    assert list(usual.columns) == ["date", "y"]
    assert usual["date"][0] == make_frame()["date"][ROWS - HORIZON]
    assert not np.array_equal(usual["y"], other["y"])


def test_past_covariates_after_the_end_change_nothing(predictor: Predictor) -> None:
    changed = make_frame()
    changed.loc[ROWS - HORIZON :, "wind"] = [1e6, -5, 3, np.nan]
    pd.testing.assert_frame_equal(predictor.predict(changed), predictor.predict(make_frame()))
    changed.loc[ROWS - HORIZON - 1, "wind"] = 50.0  # the last row of the history does count
    assert not predictor.predict(changed).equals(predictor.predict(make_frame()))


@given(
    start=st.integers(0, ROWS - 2 * HORIZON - LENGTH),
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=HORIZON, max_size=HORIZON),
)
def test_no_forecast_depends_on_later_targets_or_past_covariates(
    predictor: Predictor, start: int, values: list[float]
) -> None:
    after = slice(start + LENGTH, start + LENGTH + HORIZON)
    assert HISTORY.covariates is not None
    targets, covariates = HISTORY.values.copy(), HISTORY.covariates.copy()
    targets[after, 0] = covariates[after, 0] = values
    changed = replace(HISTORY, values=targets, covariates=covariates)

    def forecast(data: ForecastingData) -> np.ndarray:
        batch = prepare_evaluation(predictor, data)[1].batch([start])
        assert batch.covariates is not None
        return predictor.run(batch.x, None, batch.covariates).numpy()

    np.testing.assert_array_equal(forecast(changed), forecast(HISTORY))


def test_missing_future_values_are_asked_for_by_name(predictor: Predictor) -> None:
    with pytest.raises(DataError, match="needs the values of 'promo' for 2024-01-11T00:00:00 to"):
        predictor.predict(make_frame(ahead=0))
    short = make_frame()[:-1]
    with pytest.raises(DataError, match="missing from 2024-01-10T23:00:00 on"):
        predictor.predict(short)


def test_data_without_the_covariates_are_refused(predictor: Predictor) -> None:
    with pytest.raises(DataError, match="'wind'"):
        predictor.predict(make_frame().drop(columns="wind"))
    with pytest.raises(ArgumentError, match="were asked for"):
        predictor.predict(np.zeros((ROWS, 1)))


def test_a_run_remembers_its_covariates(run: Run, predictor: Predictor) -> None:
    assert run.settings.past == ("wind",)
    again = Predictor.load(Run.load(run.folder))
    pd.testing.assert_frame_equal(again.predict(make_frame()), predictor.predict(make_frame()))
    assert predictor.evaluate(run.load_data()).row == pytest.approx(run.row)


def test_intervals_and_backtests_take_covariates(predictor: Predictor) -> None:
    bounds = predictor.tabulate(make_frame(), quantiles=(0.3, 0.7)).frame
    assert (bounds["y_q30"] <= bounds["y_q70"]).all()
    data = forecasting_data(make_frame(), past="wind", future="promo")
    found = backtest(predictor, data, origins=2)
    last = make_frame()[: ROWS - HORIZON]
    ahead = last.loc[ROWS - 2 * HORIZON :, ["date", "promo"]]
    expected = predictor.predict(pd.concat([last[:-HORIZON], ahead]))
    np.testing.assert_allclose(found["forecast"][-HORIZON:], expected["y"], rtol=1e-5)


def test_the_estimator_takes_the_same_names(tmp_path: Path) -> None:
    forecaster = Forecaster(**SETTINGS, **COVARIATES).fit(make_frame())
    expected = forecaster.predict()
    history, ahead = make_frame()[:-HORIZON], make_frame()[-HORIZON:][["date", "promo"]]
    pd.testing.assert_frame_equal(forecaster.predict(pd.concat([history, ahead])), expected)
    forecaster.save(tmp_path / "saved")
    loaded = Forecaster.load(tmp_path / "saved")
    pd.testing.assert_frame_equal(loaded.predict(make_frame()), expected)


@pytest.mark.parametrize(
    "strategy",
    [
        "sacm",
        pytest.param("ensemble(k=2)", marks=pytest.mark.lab),
        pytest.param("guard+selective", marks=[pytest.mark.slow, pytest.mark.lab]),
    ],
)
def test_strategies_work_with_covariates(strategy: str) -> None:
    forecaster = Forecaster(**SETTINGS, **COVARIATES, strategy=strategy).fit(make_frame())
    assert np.isfinite(forecaster.predict()["y"]).all()


def test_every_series_of_a_panel_is_forecast_with_its_own() -> None:
    parts = [
        make_frame(seed=place).assign(unique_id=name).rename(columns={"date": "ds"})
        for place, name in enumerate("ab")
    ]
    forecaster = Forecaster(**SETTINGS, past="wind", future="promo")
    forecaster.fit(pd.concat(parts))
    both = forecaster.predict()
    assert len(both) == 2 * HORIZON
    alone = forecaster.predict(pd.concat(parts[::-1]))
    for name in "ab":
        key = both.columns[0]
        np.testing.assert_allclose(
            both[both[key] == name]["y"], alone[alone[key] == name]["y"], rtol=1e-5
        )


def test_the_command_line_asks_and_answers(sacm: Command, run: Run, tmp_path: Path) -> None:
    make_frame()[:-HORIZON].to_csv(tmp_path / "history.csv", index=False)
    asked = sacm("predict", run.folder, "--data", "history.csv")
    assert asked.code != 0
    assert "'promo'" in asked.err
    assert "add rows with them after the last one" in asked.err
    own = sacm("predict", run.folder)
    assert own.code == 0, own.err
    assert len(pd.read_csv(io.StringIO(own.out))) == HORIZON
