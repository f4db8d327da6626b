"""Findings of users that no test of a single part covers: what they saw must not come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sacm as package
from tests.cli.conftest import Command
from tests.quality import tables


@pytest.mark.filterwarnings("ignore:.*look broken")
def test_the_guard_is_switched_off_by_the_strategy_raw() -> None:
    table = tables.wide()
    table.loc[len(table) - 1, "load"] = 30.0  # the forecast starts from it

    def ahead(strategy: str | None) -> pd.DataFrame:
        chosen = {} if strategy is None else {"strategy": strategy}
        forecaster = package.Forecaster("iTransformer", horizon=6, epochs=1, size="small", **chosen)
        return forecaster.fit(table).predict()[["load"]]

    raw, guard, default = (ahead(strategy) for strategy in ("raw", "guard", None))
    np.testing.assert_array_equal(default, guard)
    assert np.abs(raw - guard).to_numpy().max() > 0.1


def test_the_first_normal_row_after_a_level_shift_is_not_repaired() -> None:
    values = tables.healthy(2000)
    guard = package.Guard(window=48).fit(values[:1500])
    new = values[1500:].copy()
    new[200:300, 1] += 8
    after = guard.transform(new)[300:]
    np.testing.assert_array_equal(after, new[300:])


def test_quality_and_train_say_the_same_of_the_same_file(sacm: Command, tmp_path: Path) -> None:
    tables.wide().to_csv(tmp_path / "plant.csv", index=False)
    file = tmp_path / "plant.csv"
    verdict = sacm("quality", file).out.splitlines()[0]
    trained = sacm("train", "forecasting", "--data", file, "--horizon", 6, "--time", 2)
    assert f"Quality: {verdict}" in trained.err


def test_rows_are_counted_from_1_in_the_file_of_events_as_on_screen(
    sacm: Command, tmp_path: Path
) -> None:
    file = tmp_path / "plant.csv"
    tables.wide().drop(columns="date").to_csv(file, index=False)
    shown = sacm("quality", file, "--flags", "events.csv").out
    event = pd.read_csv("events.csv").set_index("kind").loc["spike"]
    assert (event["first"], event["last"]) == (tables.SPIKE + 1, tables.SPIKE + 1)
    assert f" {tables.SPIKE + 1} " in shown


def test_files_as_those_of_m4_are_trained_on_and_predicted(sacm: Command, tmp_path: Path) -> None:
    values = 100 + tables.healthy(120, 4).T
    wide = pd.DataFrame(values, columns=[f"V{k}" for k in range(2, 122)])
    wide.insert(0, "V1", [f"H{k}" for k in range(1, 5)])
    wide.to_csv(tmp_path / "m4.csv", index=False)
    trained = sacm("train", "forecasting", "--data", tmp_path / "m4.csv", "--time", 3)
    assert trained.code == 0, trained.err
    predicted = sacm("predict", "latest", "--out", "next.csv")
    assert predicted.code == 0, predicted.err
    assert set(pd.read_csv("next.csv").iloc[:, 0]) == {"H1", "H2", "H3", "H4"}
