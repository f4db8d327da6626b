"""Sources that were read wrong, or not at all, until odd inputs showed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.odd_inputs import try_tables
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError

SAMPLE = 40


def test_odd_tables_through_the_commands() -> None:
    mistakes: list[str] = []
    found = try_tables(range(10_000, 10_000 + SAMPLE), report=mistakes.append, deep=False)
    assert mistakes == []
    assert found["read right"] + found["refused"] == SAMPLE
    assert found["read right"] > SAMPLE / 2


def test_numbers_are_read_to_the_last_digit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-20, 20).repeat(50)
    pd.DataFrame({"v": [repr(float(value)) for value in values]}).to_csv(tmp_path / "x.csv")
    found = pd.read_csv(tmp_path / "x.csv", float_precision="round_trip")["v"].to_numpy()
    assert (found == values).all()
    table = Table.read(tmp_path / "x.csv", columns="v")
    np.testing.assert_array_equal(table.values[:, 0], values.astype(np.float32))


def test_a_frame_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="has no rows or no columns"):
        Table.read(pd.DataFrame({"date": [], "v": []}))
    with pytest.raises(DataError, match="has no rows or no columns"):
        Table.read(pd.DataFrame(index=[1, 2]))


@pytest.mark.parametrize(
    "tensor", [torch.eye(3).to_sparse(), torch.empty(3, 3, device="meta")], ids=["sparse", "meta"]
)
def test_tensors_without_plain_values_are_refused(tensor: torch.Tensor) -> None:
    with pytest.raises(DataError, match="a tensor without plain values: pass a dense one"):
        Table.read(tensor)


def test_masked_values_are_missing() -> None:
    whole = np.ma.masked_array(np.arange(6).reshape(3, 2), mask=[[0, 1], [0, 0], [1, 0]])
    assert np.isnan(Table.read(whole).values).tolist() == [
        [False, True],
        [False] * 2,
        [True, False],
    ]


def test_a_header_may_hold_another_delimiter(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("date;x,y\n2024-01-01;1\n2024-01-02;2\n2024-01-03;4\n")
    assert Table.read(tmp_path / "x.csv").columns == ("x,y",)


def test_may_is_a_short_name_of_a_month_too() -> None:
    days = pd.date_range("2010-05-25", periods=30)
    table = Table.read(pd.DataFrame({"date": days.strftime("%d %b %Y"), "v": np.arange(30.0)}))
    np.testing.assert_array_equal(table.times, days.to_numpy())


def test_offsets_that_change_come_back_as_they_were() -> None:
    days = pd.date_range("2024-01-01", periods=200, tz="America/New_York")
    texts = [day.strftime("%Y-%m-%d %H:%M:%S%z") for day in days]
    table = Table.read(pd.DataFrame({"date": texts, "v": np.arange(200.0)}))
    assert table.times is not None
    assert table.form.zone == "America/New_York"
    assert (pd.DatetimeIndex(table.form.write_times(table.times)) == days).all()
    assert "The offsets change as in America/New_York: zone= names another." in table.notes


def test_epoch_seconds_out_of_order_under_the_name_of_a_time() -> None:
    weeks = pd.date_range("2010-01-04", periods=40, freq="W-MON")
    seconds = weeks.astype("datetime64[s]").astype(np.int64).to_numpy()
    order = np.random.default_rng(0).permutation(40)
    frame = pd.DataFrame({"n": 1.5, "zeit": seconds[order], "v": order.astype(float)})
    table = Table.read(frame)
    np.testing.assert_array_equal(table.times, weeks.to_numpy())
    assert table.columns == ("n", "v")


def test_times_by_the_clock_of_a_zone() -> None:
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"date": hours.tz_localize(None), "v": np.arange(60.0)})
    table = Table.read(frame, zone="Europe/Berlin")
    assert table.times is not None
    assert (pd.DatetimeIndex(table.form.write_times(table.times)) == hours).all()
    aware = Table.read(pd.DataFrame({"date": hours, "v": 1.0}), zone="UTC")
    assert aware.form.zone == "UTC"
    with pytest.raises(ArgumentError, match="zone 'Nowhere' is not a time zone"):
        Table.read(frame, zone="Nowhere")
    spring = pd.DataFrame({"date": ["2024-03-31 02:30", "2024-03-31 03:30"], "v": 1.0})
    with pytest.raises(DataError, match="not those of a clock in Europe/Berlin"):
        Table.read(spring, zone="Europe/Berlin")
    with pytest.raises(DataError, match="holds epoch s, for which there is no zone"):
        Table.read(pd.DataFrame({"date": [1_700_000_000, 1_700_003_600], "v": 1.0}), zone="UTC")


def test_a_part_of_the_calendar_goes_by_the_local_clock() -> None:
    hours = pd.date_range("2014-05-25", periods=60, freq="6h", tz="Europe/Berlin")
    texts = [hour.strftime("%d %b %Y %H:%M%z") for hour in hours]
    table = Table.read(pd.DataFrame({"date": texts, "v": 1.5, "month": hours.month}))
    assert table.columns == ("v",)


def test_a_nameless_first_column_before_a_tab(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=9)
    frame = pd.DataFrame({"date": days, "v": np.arange(9.0)})
    frame.to_csv(tmp_path / "x.tsv", sep="\t")
    assert Table.read(tmp_path / "x.tsv").columns == ("v",)
