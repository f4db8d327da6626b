from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from sacm.data.covariates import future_timestamps
from sacm.inference.forecast import read_series

HORIZON = 3


def answer(source: Any, **options: Any) -> Any:
    """What a forecast of 0, 1, 2 … would look like for this data."""
    data = read_series(source, {**options, "split": (1.0, 0.0, 0.0)})
    assert data.form is not None
    rows = np.stack(list(data.last_rows(2).values()))
    values = np.arange(len(rows) * HORIZON * data.channels, dtype=np.float32)
    times = None
    if data.timestamps is not None:
        ends = data.timestamps[rows]
        times = np.stack([future_timestamps(each, HORIZON, data.frequency) for each in ends])
    values = values.reshape(len(rows), HORIZON, data.channels)
    series = list(data.last_rows(1))
    return data.form.give(values, series=series, columns=data.columns, times=times)


def table(frequency: str, rows: int = 40) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-31", periods=rows, freq=frequency)
    return pd.DataFrame({"when": stamps, "a": np.arange(rows) / 2, "b": -np.arange(rows) / 2})


@pytest.mark.parametrize("frequency", ["h", "15min", "D", "B", "W-MON", "MS", "ME", "QS", "YS"])
def test_time_goes_on_as_it_did(frequency: str) -> None:
    whole = table(frequency, 40 + HORIZON)
    forecast = answer(whole[:40], time="when")
    assert list(forecast.columns) == ["when", "a", "b"]
    assert list(forecast["when"]) == list(whole["when"][40:])
    assert forecast[["a", "b"]].to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]


def test_index_comes_back_as_index() -> None:
    frame = table("D").set_index("when")
    forecast = answer(frame)
    assert forecast.index.name == "when"
    assert list(forecast.columns) == ["a", "b"]
    both = pd.concat([frame, forecast])
    assert (both.index.diff()[1:] == pd.Timedelta("1D")).all()
    assert answer(frame.rename_axis(None)).index.name is None


def test_series_comes_back_as_series() -> None:
    forecast = answer(table("h").set_index("when")["a"])
    assert isinstance(forecast, pd.Series)
    assert forecast.name == "a"
    assert forecast.index[0] == pd.Timestamp("2024-02-01 16:00")


def test_polars_comes_back_as_pandas() -> None:
    forecast = answer(pl.from_pandas(table("h")))
    pd.testing.assert_frame_equal(forecast, answer(table("h")))


def test_time_zone_comes_back() -> None:
    frame = table("h")
    frame["when"] = frame["when"].dt.tz_localize("Europe/Berlin")
    forecast = answer(frame)
    assert forecast["when"][0] == frame["when"].iloc[-1] + pd.Timedelta("1h")
    assert str(forecast["when"].dt.tz) == "Europe/Berlin"


def test_local_days_go_on_through_a_change_of_the_clock() -> None:
    days = pd.date_range("2024-02-20", periods=43, freq="D", tz="Europe/Berlin")
    for end in (39, 40):  # the change, on 31 March, is forecast; it is in the data
        frame = pd.DataFrame({"when": days[:end], "a": np.arange(end) / 2})
        assert list(answer(frame)["when"]) == list(days[end : end + HORIZON])
        assert list(answer(frame.set_index("when")).index) == list(days[end : end + HORIZON])
        long = pd.DataFrame({"unique_id": "x", "ds": days[:end], "y": np.arange(end) / 2})
        assert list(answer(long)["ds"]) == list(days[end : end + HORIZON])


def test_rows_without_time_are_counted_on() -> None:
    forecast = answer(table("h")[["a", "b"]])
    assert list(forecast.index) == [40, 41, 42]
    counted = table("h")[["a"]].assign(time=np.arange(40) * 10)
    assert list(answer(counted)["time"]) == [400, 410, 420]


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3)])
def test_arrays_and_tensors(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    assert answer(values).shape == (HORIZON, *shape[1:])
    forecast = answer(torch.from_numpy(values))
    assert isinstance(forecast, torch.Tensor)
    assert forecast.shape == (HORIZON, *shape[1:])


def long_table(lengths: tuple[int, ...]) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "unique_id": 10 - number,
                "ds": pd.date_range("2024-01-01", periods=length, freq="D"),
                "y": np.arange(length) / 2,
            }
        )
        for number, length in enumerate(lengths)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("lengths", [(30, 30), (30, 40), (20,)])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_long_tables(lengths: tuple[int, ...], library: str) -> None:
    frame: Any = long_table(lengths)
    frame = pl.from_pandas(frame) if library == "polars" else frame
    forecast = answer(frame)
    assert list(forecast.columns) == ["unique_id", "ds", "y"]
    assert forecast["unique_id"].dtype == "int64"
    ends = {10 - number: length for number, length in enumerate(lengths)}
    for name, part in forecast.groupby("unique_id"):
        first = pd.Timestamp("2024-01-01") + pd.Timedelta(days=ends[name])
        assert list(part["ds"]) == list(pd.date_range(first, periods=HORIZON))
    expected = [[0, 2, 4], [1, 3, 5]] if lengths == (30, 30) else [[0, 1, 2], [3, 4, 5]]
    for position, (_, part) in enumerate(forecast.groupby("unique_id", sort=False)):
        assert part["y"].tolist() == expected[position]


def test_long_table_of_counted_rows() -> None:
    frame = long_table((30, 40))
    frame["ds"] = frame.groupby("unique_id").cumcount() + 1
    forecast = answer(frame)
    assert forecast["ds"].tolist() == [31, 32, 33, 41, 42, 43]
