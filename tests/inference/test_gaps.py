"""What was not measured: never scored, repaired up to a limit, and said."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm import Forecaster, Predictor
from sacm.data import forecasting_data
from sacm.errors import DataError, SACMWarning
from sacm.inference.backtest import backtest, errors_by_origin
from tests.cli.conftest import Command, sacm

__all__ = ["sacm"]  # the fixture
LENGTH, HORIZON = 12, 4


def series(rows: int = 300, *, seed: int = 0) -> pd.DataFrame:
    time = np.arange(rows)
    noise = np.random.default_rng(seed).normal(scale=0.2, size=(rows, 2))
    values = 10 + np.sin(2 * np.pi * time[:, None] / [12, 24]) + noise
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame(values, columns=["a", "b"]).assign(date=stamps)


def with_gaps(table: pd.DataFrame, *, first: int = 0) -> pd.DataFrame:
    """A tenth of the values missing, six in a row."""
    table = table.copy()
    for start in range(first, len(table) - 6, 60):
        table.loc[table.index[start : start + 6], "a"] = np.nan
    return table


@pytest.fixture(scope="module", params=["raw", "guard"])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    forecaster = Forecaster(
        "iTransformer",
        size="small",
        epochs=1,
        input_len=LENGTH,
        horizon=HORIZON,
        strategy=request.param,
        folder=tmp_path_factory.mktemp("runs"),
    )
    return forecaster.fit(series())


@pytest.fixture(autouse=True)
def no_notes() -> Any:
    """Notes on gaps are warnings, which are no failures here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SACMWarning)
        yield


def run_of(forecaster: Forecaster) -> Path:
    return next(path for path in Path(str(forecaster.folder)).iterdir() if path.is_dir())


@pytest.mark.parametrize("strategy", ["raw", "guard"])
def test_gaps_in_training_rows_are_no_obstacle(strategy: str) -> None:
    tiny = {"size": "small", "epochs": 1, "input_len": 12, "horizon": 4}
    forecaster = Forecaster("iTransformer", strategy=strategy, **tiny)
    forecaster.fit(with_gaps(series(), first=20))
    assert np.isfinite(forecaster.predict()[["a", "b"]].to_numpy()).all()


def test_a_run_is_evaluated_again_with_the_errors_of_its_training(
    sacm: Command, tmp_path: Path
) -> None:
    """MASE divides by the naive error of measured training rows, not of filled ones."""
    with_gaps(series(), first=20).to_csv(tmp_path / "gaps.csv", index=False)
    trained = sacm(
        *("train", "forecasting", "--data", tmp_path / "gaps.csv", "--backbone", "iTransformer"),
        *("--size", "small", "--epochs", 1, "--input-len", 12, "--horizon", 4),
    )
    assert trained.code == 0, trained.err
    again = json.loads(sacm("evaluate", "latest", "--json").out)
    folder = Path(trained.out.split("run: ")[-1].strip())
    before = json.loads((folder / "metrics.json").read_text())["baselines"]["rows"]
    rows = again["baselines"]["rows"]
    assert {name: rows[name]["mase"] for name in rows} == pytest.approx(
        {name: before[name]["mase"] for name in before}
    )


def test_targets_that_were_not_measured_change_no_error(fitted: Forecaster) -> None:
    """Whatever stood where a value is missing, the error is that of the measured ones."""
    test = series(60, seed=1)
    gappy = test.copy()
    gappy.loc[40:45, "a"] = np.nan
    found = fitted.evaluate(gappy)
    scaled = []
    for end in range(LENGTH, 60 - HORIZON + 1):
        forecast = fitted.predict(gappy[:end], max_repaired=1)[["a", "b"]].to_numpy()
        scaled.append(forecast - gappy[["a", "b"]].to_numpy()[end : end + HORIZON])
    assert found["mae_raw"] == pytest.approx(np.nanmean(np.abs(scaled)), rel=0.05)
    assert found != fitted.evaluate(test)


def test_results_say_how_much_was_not_measured(fitted: Forecaster, sacm: Command) -> None:
    table = series()
    table.loc[100:129, "a"] = np.nan
    table.to_csv("gappy.csv", index=False)
    sentence = "5.0% of the test targets were not measured and do not count."
    assert sentence in sacm("evaluate", run_of(fitted), "--data", "gappy.csv").err
    looked_back = sacm("backtest", run_of(fitted), "--data", "gappy.csv", "--origins", "70")
    assert "of the targets were not measured and do not count" in looked_back.err


def test_a_backtest_scores_what_was_measured(fitted: Forecaster) -> None:
    table = series()
    table.loc[260:275, "a"] = np.nan
    data = forecasting_data(series())
    data = replace(data, values=table[["a", "b"]].to_numpy(dtype=np.float32))
    found = backtest(fitted.predictor_, data, origins=12)
    own, other = (found[found["channel"] == name] for name in ("a", "b"))
    inside = own["row"].between(261, 276)
    assert own["truth"][inside].isna().all()
    assert own["truth"][~inside].notna().all()
    assert other["truth"].notna().all()
    assert np.isfinite(errors_by_origin(found)[["mae", "naive", "seasonal_naive"]].to_numpy()).all()
    # The naive forecast is the last value that was measured, never one that was drawn.
    stuck = own["origin"].between(264, 277)
    np.testing.assert_allclose(own["naive"][stuck], table["a"][259], rtol=1e-5)


def test_a_window_that_is_mostly_missing_is_refused(fitted: Forecaster, sacm: Command) -> None:
    table = series()
    table.loc[290:, ["a", "b"]] = np.nan  # 10 of 12 rows
    table.loc[299, "b"] = 10.0  # the series does not end before
    rows = table[["a", "b"]].to_numpy()
    predictor = fitted.predictor_
    asks = (
        lambda **more: fitted.predict(table, **more),
        lambda **more: predictor.predict(table, **more),
        lambda **more: predictor.predict(rows, **more),
        lambda **more: predictor.predict(rows[None, -LENGTH:], **more),
    )
    for ask in asks:
        with pytest.raises(DataError, match=r"repaired or missing, more than 50%.*max_repaired="):
            ask()
        answer = ask(max_repaired=1)
        values = answer[["a", "b"]].to_numpy() if hasattr(answer, "columns") else answer
        assert np.isfinite(values).all()
    table.to_csv("mostly.csv", index=False)
    refused = sacm("predict", run_of(fitted), "--data", "mostly.csv")
    assert (refused.code, refused.out) == (2, "")
    assert "--max-repaired" in refused.err
    allowed = sacm("predict", run_of(fitted), "--data", "mostly.csv", "--max-repaired", "1")
    assert allowed.code == 0, allowed.err
    assert "are missing" in allowed.err
    share = pd.read_csv(io.StringIO(allowed.out))["repaired_share"][0]
    assert 0.7 < share < 1


def test_intervals_of_a_channel_grow_with_what_is_missing_of_it(fitted: Forecaster) -> None:
    widths = []
    for missing in (0, 3, 6, 11):
        table = series()
        table.loc[299 - missing : 298, "a"] = np.nan
        lower, upper = fitted.predict_interval(table, coverage=0.5, max_repaired=1)
        widths.append((upper - lower)[["a", "b"]].mean())
    growth = [each["a"] / widths[0]["a"] for each in widths]
    assert growth[1] > 1.1
    assert growth[2] > 1.5
    assert growth[3] > 4
    assert widths[3]["b"] < 2 * widths[0]["b"]


def test_one_series_of_a_panel_that_is_missing_stops_no_other() -> None:
    parts = [series(seed=seed)[["date", "a"]].assign(name=name) for seed, name in enumerate("xyz")]
    table = pd.concat(parts, ignore_index=True)
    tiny = {"size": "small", "epochs": 1, "input_len": LENGTH, "horizon": HORIZON}
    forecaster = Forecaster("iTransformer", strategy="raw", id="name", **tiny).fit(
        pd.concat([parts[0], parts[1][:290], parts[2]])
    )
    gone = (table["name"] == "y") & (table.groupby("name").cumcount() >= 290)
    table.loc[gone & (table.groupby("name").cumcount() < 299), "a"] = np.nan
    answer = forecaster.predictor_.tabulate(table)
    assert set(answer.frame["name"]) == {"x", "z"}
    assert any("more than 50% repaired or missing: 'y'" in note for note in answer.notes)


def test_more_steps_than_trained_for_are_forecast_from_forecasts(
    fitted: Forecaster, sacm: Command
) -> None:
    table = series()
    plain, longer = fitted.predict(table), fitted.predict(table, horizon=10)
    assert len(longer) == 10
    pd.testing.assert_frame_equal(longer[:HORIZON], plain)
    assert (longer["date"].diff()[1:] == pd.Timedelta("1h")).all()
    joined = pd.concat([table, plain])
    pd.testing.assert_frame_equal(
        longer[HORIZON : 2 * HORIZON].reset_index(drop=True), fitted.predict(joined), rtol=1e-4
    )
    assert len(fitted.predict(table, horizon=2)) == 2
    rows = table[["a", "b"]].to_numpy()
    assert fitted.predictor_.predict(rows, horizon=9).shape == (9, 2)
    table.to_csv("my.csv", index=False)
    printed = sacm("predict", run_of(fitted), "--data", "my.csv", "--horizon", "10")
    assert printed.code == 0, printed.err
    assert len(pd.read_csv(io.StringIO(printed.out))) == 10
    assert "trained for 4 steps: later ones are forecast from the forecasts" in printed.err


@pytest.mark.parametrize("rows", [(300, 300), (300, 280)])  # channels side by side, or series
def test_a_panel_has_a_picture(sacm: Command, rows: tuple[int, int]) -> None:
    parts = [
        series(count)[["date", "a"]].assign(city=f"c{count}{i}") for i, count in enumerate(rows)
    ]
    pd.concat(parts).to_csv("panel.csv", index=False)
    tiny = ("--size", "small", "--epochs", 1, "--input-len", LENGTH, "--horizon", HORIZON)
    trained = sacm("train", "forecasting", "--data", "panel.csv", "--id", "city", *tiny)
    assert trained.code == 0, trained.err
    out = ("--out", "next.csv", "--plot", "next.png", "--coverage", "0.5")
    outcome = sacm("predict", "latest", *out)
    assert outcome.code == 0, outcome.err
    assert Path("next.png").read_bytes()[1:4] == b"PNG"
    table = pd.read_csv("next.csv")
    assert len(table) == 2 * HORIZON
    assert (table["a_lower_50"] <= table["a_upper_50"]).all()


def test_other_columns_and_another_order_change_nothing(fitted: Forecaster) -> None:
    table = series()
    more = table.assign(c=1.0, remark="text")[["c", "b", "remark", "date", "a"]]
    pd.testing.assert_frame_equal(fitted.predict(more), fitted.predict(table))
    loaded = Predictor.load(run_of(fitted))
    pd.testing.assert_frame_equal(loaded.predict(more), loaded.predict(table))
    assert fitted.evaluate(more) == fitted.evaluate(table)
