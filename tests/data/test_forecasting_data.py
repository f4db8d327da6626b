"""A user's own files, frames and arrays: what is read, and what is repaired on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from sacm.data import forecasting_data


def wide(rows: int = 50, frequency: str = "h") -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "date": pd.date_range("2021-03-01", periods=rows, freq=frequency),
            "load": random.standard_normal(rows),
            "price": random.standard_normal(rows) * 100,
        }
    )


def check(data, frame: pd.DataFrame) -> None:
    np.testing.assert_allclose(data.values, frame[["load", "price"]], rtol=1e-6)
    assert data.columns == ("load", "price")
    np.testing.assert_array_equal(data.timestamps, frame["date"].to_numpy().astype("datetime64[s]"))
    assert data.frequency == "h"
    assert [len(rows) for rows in data.splits] == [35, 5, 10]
    assert data.notes == ()


def test_every_kind_of_table(tmp_path: Path):
    frame = wide()
    frame.to_parquet(tmp_path / "load.parquet")
    frame.to_csv(tmp_path / "load.csv.gz", index=False)
    check(forecasting_data(tmp_path / "load.parquet"), frame)
    check(forecasting_data(str(tmp_path / "load.csv.gz")), frame)
    check(forecasting_data(frame), frame)
    check(forecasting_data(pl.from_pandas(frame)), frame)
    check(forecasting_data(frame.set_index("date")), frame)


def test_arrays_of_all_kinds(tmp_path: Path):
    values = np.random.default_rng(0).standard_normal((40, 2))
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", values=values, other=np.zeros(3))
    for source in (values, torch.from_numpy(values), values.tolist(), tmp_path / "a.npy"):
        np.testing.assert_allclose(forecasting_data(source).values, values, rtol=1e-6)
    np.testing.assert_allclose(forecasting_data(tmp_path / "a.npz").values, values, rtol=1e-6)
    one = forecasting_data(values[:, 0])
    assert one.values.shape == (40, 1)
    assert one.timestamps is None
    assert forecasting_data(pd.Series(values[:, 0], name="x")).columns == ("x",)


def test_a_file_without_header_and_a_saved_index(tmp_path: Path):
    values = np.round(np.random.default_rng(0).standard_normal((30, 3)), 4)
    np.savetxt(tmp_path / "plain.txt", values, delimiter=",")
    data = forecasting_data(tmp_path / "plain.txt")
    np.testing.assert_allclose(data.values, values, rtol=1e-5)
    assert data.columns == ("column 1", "column 2", "column 3")
    wide().to_csv(tmp_path / "indexed.csv")
    assert forecasting_data(tmp_path / "indexed.csv").columns == ("load", "price")


def test_numbered_columns_are_a_header_and_a_dated_first_row_is_none(tmp_path: Path):
    values = np.random.default_rng(0).standard_normal((30, 3))
    pd.DataFrame(values).to_csv(tmp_path / "numbered.csv", index=False)
    np.testing.assert_allclose(
        forecasting_data(tmp_path / "numbered.csv").values, values, rtol=1e-6
    )
    wide(30).to_csv(tmp_path / "bare.csv", index=False, header=False)
    data = forecasting_data(tmp_path / "bare.csv")
    assert data.values.shape == (30, 2)
    assert data.timestamps[0] == np.datetime64("2021-03-01")


def test_columns_and_timestamp_can_be_named():
    frame = wide().rename(columns={"date": "when"}).assign(site="north")
    data = forecasting_data(frame, time="when", columns=["price"])
    assert data.columns == ("price",)
    assert data.timestamps is not None


@pytest.mark.parametrize("frequency", ["h", "D", "B", "MS", "ME", "W-SUN"])
def test_absent_rows_are_inserted(frequency):
    frame = wide(frequency=frequency)
    data = forecasting_data(frame.drop(index=[7, 8, 30]))
    np.testing.assert_array_equal(data.timestamps, frame["date"].to_numpy().astype("datetime64[s]"))
    assert "3 of 50 rows on the grid" in data.notes[0]
    assert np.flatnonzero(np.isnan(data.values).all(axis=1)).tolist() == [7, 8, 30]


def test_time_zones_become_utc():
    frame = wide()
    frame["date"] = frame["date"].dt.tz_localize("Europe/Berlin")
    data = forecasting_data(frame)
    assert data.timestamps[0] == np.datetime64("2021-02-28T23:00:00")
    assert data.notes == ("Times are kept in UTC.",)


def test_a_numeric_time_column_gives_the_order_only():
    frame = wide().assign(time=np.arange(50)).drop(columns="date")
    data = forecasting_data(frame)
    assert data.timestamps is None
    assert data.columns == ("load", "price")
    assert "only counts" in data.notes[0]


def test_constant_channels_are_named():
    data = forecasting_data(wide().assign(flat=3.0))
    assert data.notes == ("Constant in the training rows, so there is nothing to learn: 'flat'.",)


def test_integers_booleans_and_text_numbers():
    frame = wide().assign(on=[True, False] * 25, count=np.arange(50), text=["1.5"] * 49 + ["?"])
    frame["text"] = frame["text"].replace("?", None)
    data = forecasting_data(frame)
    assert data.values.dtype == np.float32
    assert data.values[1, 2:5].tolist() == [0.0, 1.0, 1.5]


def test_an_index_of_periods_is_the_time():
    days = pd.date_range("2024-01-01", periods=30, freq="D")
    frame = pd.DataFrame({"load": np.arange(30.0)}, index=days.to_period("D"))
    data = forecasting_data(frame.iloc[::-1])
    np.testing.assert_array_equal(data.timestamps, days.to_numpy())
    np.testing.assert_array_equal(data.values[:, 0], np.arange(30))
    assert data.frequency == "D"


def test_an_index_that_is_not_used_is_named():
    names = [f"machine-{number}" for number in range(30)]
    frame = pd.DataFrame({"load": np.arange(30.0)}, index=names)
    assert forecasting_data(frame).notes[0].startswith("The index of the frame is not used")
    dated = frame.assign(date=pd.date_range("2024-01-01", periods=30, freq="D"))
    assert forecasting_data(dated).notes[0].startswith("The index of the frame is not used")
    assert forecasting_data(frame.reset_index(drop=True).iloc[5:]).notes == ()
