"""Networks whose series have scales of their own: trained, asked, tested, exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.data import forecasting_data
from sacm.errors import SACMError, SACMWarning
from sacm.inference import Predictor
from sacm.inference.backtest import backtest
from sacm.inference.export import export
from sacm.tasks import make_settings
from sacm.training import Hardware, Run, train
from tests.data.test_series_scaling import panel

TINY = {"backbone": "iTransformer", "size": "small", "epochs": 1, "input_len": 8, "horizon": 3}
LENGTHS = {"low": 90, "high": 110, "odd": 100}


@pytest.fixture(scope="module", params=["raw", "guard"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = make_settings(task="forecasting", data="panel", strategy=request.param, **TINY)
    return train(
        settings,
        folder=tmp_path_factory.mktemp("runs"),
        data=forecasting_data(panel(LENGTHS), name="panel"),
        hardware=Hardware(show_progress=False),
    )


def test_a_run_keeps_its_scales_and_says_that_it_has_them(run: Run):
    assert run.settings.scaling == "series"
    assert run.scaler.series == tuple(LENGTHS)
    assert set(run.metrics["report"]["series"]) == set(LENGTHS)
    headings, rows = run.task.tabulate(run.metrics)
    assert headings[1] == "MAE"
    assert any(row[0] == "all series, in own deviations" for row in rows)


def test_a_series_twice_as_high_and_wide_is_forecast_twice_as_high(run: Run):
    predictor = Predictor.load(run)
    table = panel(LENGTHS)
    first = predictor.predict(table)
    assert list(first["unique_id"].unique()) == list(LENGTHS)
    # A series under a new name is scaled by its own rows, whatever their units.
    one = table[table["unique_id"] == "odd"].assign(unique_id="new")
    with pytest.warns(SACMWarning, match="Not trained on, so scaled by their own rows: 'new'"):
        both = predictor.predict(pd.concat([table, one]))
    with pytest.warns(SACMWarning, match="Not trained on"):
        scaled = predictor.predict(pd.concat([table, one.assign(y=one["y"] * 1000)]))
    old, big = (x[x["unique_id"] == "new"]["y"].to_numpy() for x in (both, scaled))
    np.testing.assert_allclose(big, 1000 * old, rtol=1e-3)
    answer = predictor.tabulate(pd.concat([table, one]))
    assert "Not trained on, so scaled by their own rows: 'new'." in answer.notes


def test_tests_of_new_rows_use_the_kept_scales(run: Run):
    predictor = Predictor.load(run)
    result = predictor.evaluate(panel(LENGTHS))
    assert set(result.report["series"]) == set(LENGTHS)
    assert result.row["mae_raw"] != result.row["mae"]
    series = panel({"odd": 100})
    found = backtest(predictor, forecasting_data(series), origins=2)
    assert found["scale"].to_numpy() == pytest.approx(run.scaler.std[2, 0])


def test_intervals_have_the_width_of_their_series(run: Run, tmp_path: Path):
    predictor = Predictor.load(run)
    frame = predictor.tabulate(panel(LENGTHS), intervals=(0.8,)).frame
    width = (frame["y_upper_80"] - frame["y_lower_80"]).groupby(frame["unique_id"]).mean()
    spread = dict(zip(run.scaler.series, run.scaler.std[:, 0], strict=True))
    # Some windows are livelier than others, by far less than the series differ.
    assert width["high"] / width["odd"] == pytest.approx(spread["high"] / spread["odd"], rel=0.5)


def test_a_network_of_several_scales_is_not_exported(run: Run, tmp_path: Path):
    with pytest.raises(SACMError, match="own scale: train with --scaling shared"):
        export(Predictor.load(run), tmp_path / "model.pt2", "torch")
