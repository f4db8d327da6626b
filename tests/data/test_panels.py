"""Long format: `unique_id, ds, y`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sacm.data import forecasting_data, forecasting_windows
from sacm.errors import DataError


def long(lengths: dict[str, int]) -> pd.DataFrame:
    """Series whose values tell their name and step: 1000 * number + step."""
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2020-01-01", periods=length, freq="D"),
                "y": 1000.0 * number + np.arange(length),
            }
        )
        for number, (name, length) in enumerate(lengths.items())
    ]
    return pd.concat(parts, ignore_index=True)


def test_series_with_the_same_timestamps_become_channels():
    data = forecasting_data(long({"a": 40, "b": 40}))
    assert data.columns == ("a", "b")
    np.testing.assert_array_equal(data.values[:, 1] - data.values[:, 0], 1000)
    assert data.frequency == "D"


def test_series_of_unequal_length_stay_apart():
    data = forecasting_data(long({"a": 40, "b": 60, "c": 50}))
    assert data.values.shape == (150, 1)
    assert [len(rows) for rows in data.splits] == [28 + 42 + 35, 4 + 6 + 5, 8 + 12 + 10]
    windows = forecasting_windows(data, input_len=3, horizon=1)
    # Inputs of validation and test windows reach back into the rows before.
    for part, count in zip(windows, [25 + 39 + 32, 4 + 6 + 5, 8 + 12 + 10], strict=True):
        assert len(part) == count
        batch = part.batch(np.arange(len(part)))
        scaler = part.scaler.of_places(batch.series.numpy())
        raw = scaler.inverse(np.concatenate([batch.x, batch.y], axis=1))[:, :, 0]
        np.testing.assert_allclose(np.diff(raw, axis=1), 1, atol=0.02)


def test_the_end_of_every_series_is_known():
    data = forecasting_data(long({"a": 40, "b": 60}))
    rows = data.last_rows(15)
    np.testing.assert_array_equal(data.values[rows["a"], 0], np.arange(25, 40))
    np.testing.assert_array_equal(data.values[rows["b"], 0], 1000 + np.arange(45, 60))
    assert data.timestamps[rows["b"][-1]] == np.datetime64("2020-02-29")


def test_polars_shuffled_rows_gaps_and_extra_columns():
    table = long({"a": 40, "b": 60}).assign(promo=1)
    table.loc[3, "y"] = np.nan
    shuffled = table.drop(index=[50]).sample(frac=1, random_state=0)
    data = forecasting_data(pl.from_pandas(shuffled))
    assert data.values.shape == (100, 1)
    assert np.isnan(data.values).sum() == 2
    rows = data.last_rows(60)["b"]
    measured = ~np.isnan(data.values[rows, 0])
    wanted = 1000 + np.arange(60)
    np.testing.assert_allclose(data.values[rows, 0][measured], wanted[measured], atol=0.01)


def test_errors_name_the_series():
    table = long({"a": 40, "b": 60})
    with pytest.raises(DataError, match="series 'b': rows 41 and 42 have the same time"):
        forecasting_data(table.assign(ds=table["ds"].where(table.index != 41, table["ds"][40])))
    with pytest.raises(DataError, match="row 6 has no unique_id"):
        forecasting_data(table.assign(unique_id=table["unique_id"].where(table.index != 5)))
