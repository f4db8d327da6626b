from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from sacm.training import Run
from tests.cli.conftest import Command, Example


def test_forecasts_of_the_past_are_those_of_predict(sacm: Command, example: Example) -> None:
    outcome = sacm("backtest", example.forecasting, "--origins", 3, "--step", 5, "--out", "b.csv")
    assert outcome.code == 0, outcome.err
    assert "seasonal naive" in outcome.out
    made = pd.read_csv("b.csv")
    assert sorted(made["origin"].unique()) == [287, 292, 297]
    series = pd.read_csv(example.series)
    series[:286].to_csv("before.csv", index=False)
    then = sacm("predict", example.forecasting, "--data", "before.csv")
    expected = pd.read_csv(io.StringIO(then.out))
    own = made[(made["origin"] == 287) & (made["channel"] == "load")]
    np.testing.assert_allclose(own["forecast"], expected["load"], rtol=1e-5)
    np.testing.assert_allclose(own["truth"], series["load"][286:290], rtol=1e-6)
    assert list(own["time"]) == list(series["date"][286:290])


def test_errors_of_an_origin_are_their_formulas(sacm: Command, example: Example) -> None:
    outcome = sacm("backtest", example.forecasting, "--origins", 2, "--out", "b.csv", "--json")
    table = pd.DataFrame(json.loads(outcome.out))
    made = pd.read_csv("b.csv")
    std = dict(zip(["load", "heat"], Run.load(example.forecasting).scaler.std, strict=True))
    values = pd.read_csv(example.series)
    for _, row in table.iterrows():
        own = made[made["origin"] == row["row"]]
        scale = own["channel"].map(std)
        assert row["mae"] == pytest.approx(((own["forecast"] - own["truth"]).abs() / scale).mean())
        last = own["channel"].map(lambda name, at=row["row"]: values[name][at - 2])
        assert row["naive"] == pytest.approx(((last - own["truth"]).abs() / scale).mean(), rel=1e-5)


def test_origins_lie_in_the_test_part(sacm: Command, example: Example) -> None:
    outcome = sacm("backtest", example.forecasting, "--origins", 500, "--step", 1, "--json")
    assert json.loads(outcome.out)[0]["row"] == 241
    assert sacm("backtest", example.anomaly).code == 2
