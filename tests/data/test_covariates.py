from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm.data import fingerprint, forecasting_data, forecasting_windows
from sacm.data.covariates import check_roles, roles_of
from sacm.data.datasets import ForecastingData
from sacm.data.scaling import fill_data
from sacm.errors import ArgumentError, DataError

ROWS = 60


def make_frame(rows: int = ROWS, start: str = "2024-01-01") -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "date": pd.date_range(start, periods=rows, freq="h"),
            "y": random.normal(size=rows),
            "load": random.normal(size=rows),
            "hour": np.arange(rows) % 24,
        }
    )


def make_panel() -> pd.DataFrame:
    parts = []
    for place, name in enumerate(("north", "south")):
        part = make_frame(ROWS + 5 * place).assign(store=name)
        part.loc[part.index[-4:], "y"] = np.nan
        parts.append(part)
    return pd.concat(parts)


def test_covariates_are_no_channels() -> None:
    data = forecasting_data(make_frame(), past="load", future=["hour"])
    assert data.columns == ("y",)
    assert (data.past, data.future) == (("load",), ("hour",))
    assert data.covariates is not None
    np.testing.assert_allclose(data.covariates, make_frame()[["load", "hour"]], rtol=1e-6)
    assert any(line.startswith("future covariates") for line in data.understood)


def test_rows_after_the_last_value_are_kept_for_the_forecast() -> None:
    frame = make_frame()
    frame.loc[ROWS - 6 :, "y"] = np.nan
    data = forecasting_data(frame, past="load", future="hour")
    assert len(data.values) == ROWS - 6
    assert data.ahead is not None
    np.testing.assert_array_equal(data.ahead["data"][:, 0], 0)  # past covariates are not kept
    np.testing.assert_array_equal(data.ahead["data"][:, 1], frame["hour"][-6:])
    assert not data.notes  # nothing was interpolated


def test_with_a_target_its_last_value_ends_the_history() -> None:
    frame = make_frame()
    frame.loc[ROWS - 6 :, "y"] = np.nan
    data = forecasting_data(frame, target="y", future="hour")
    assert data.columns == ("y", "load")
    assert len(data.values) == ROWS - 6


def test_series_of_a_panel_keep_their_own_covariates() -> None:
    data = forecasting_data(make_panel(), past="load", future="hour", id="store")
    assert data.covariates is not None
    assert data.ahead is not None
    assert {name: len(rows) for name, rows in data.ahead.items()} == {"north": 4, "south": 4}
    panel = make_panel()
    for name, rows in data.last_rows(100).items():
        own = panel[panel["store"] == name].dropna()
        np.testing.assert_allclose(data.values[rows, 0], own["y"], rtol=1e-6)
        np.testing.assert_allclose(data.covariates[rows], own[["load", "hour"]], rtol=1e-6)


def test_something_must_be_left_to_forecast() -> None:
    frame = make_frame()[["date", "y"]]
    with pytest.raises(DataError, match="every column is a covariate"):
        forecasting_data(frame, past="y")
    with pytest.raises(DataError, match="'wind'"):
        forecasting_data(frame, past="wind")


def test_gaps_of_covariates_are_filled_when_data_are_prepared() -> None:
    frame = make_frame()
    frame.loc[5, "load"] = np.nan
    data, note = fill_data(forecasting_data(frame, past="load"))
    assert data.covariates is not None
    assert data.covariates[5, 0] == pytest.approx(frame["load"][[4, 6]].mean(), rel=1e-5)
    assert "were not measured" in note


def test_what_lies_ahead_does_not_rename_a_run() -> None:
    frame = make_frame()
    frame.loc[ROWS - 6 :, "y"] = np.nan
    longer, shorter = (forecasting_data(f, past="load", future="hour") for f in (frame, frame[:-3]))
    assert fingerprint(longer) == fingerprint(shorter)


def test_columns_named_twice_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'a' is named twice"):
        roles_of({"past": ["a"], "future": ["a"]})


WHOLE = forecasting_data(make_frame(), past="load", future="hour", split=(1.0, 0.0, 0.0))


@given(
    start=st.integers(0, ROWS - 12),
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4),
)
def test_windows_never_show_the_future_of_past_covariates(start: int, values: list[float]) -> None:
    def window(changed: bool) -> np.ndarray:
        assert WHOLE.covariates is not None
        covariates = WHOLE.covariates.copy()
        if changed:
            covariates[start + 8 : start + 12, 0] = values
        data = replace(WHOLE, covariates=covariates)
        batch = forecasting_windows(data, input_len=8, horizon=4).train.batch([start])
        assert batch.covariates is not None
        return batch.covariates.numpy()

    np.testing.assert_array_equal(window(True), window(False))


def test_data_without_the_asked_covariates_are_refused() -> None:
    data: ForecastingData = forecasting_data(make_frame()[["date", "y"]])
    with pytest.raises(DataError, match="past covariates none but load were asked for"):
        check_roles(data, roles_of({"past": "load"}))
