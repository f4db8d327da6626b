"""One table of a user, read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sacm.data.tables.panel import Panel
from sacm.data.tables.source import load_source
from sacm.data.tables.table import Table
from sacm.errors import DataError


def hourly(rows: int = 12) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "a": np.arange(rows) / 2, "b": np.arange(rows) ** 2.0})


def test_rows_are_on_the_grid_and_know_their_place_in_the_users_table() -> None:
    frame = hourly().drop(index=[4, 5]).iloc[::-1]
    table = Table.read(frame, name="load")
    assert table.name == "load"
    assert table.columns == ("a", "b")
    assert table.frequency == "h"
    np.testing.assert_array_equal(table.times, hourly()["date"].to_numpy())
    assert table.order.tolist() == [9, 8, 7, 6, -1, -1, 5, 4, 3, 2, 1, 0]
    assert np.isnan(table.values[4:6]).all()
    kept = table.order >= 0
    np.testing.assert_array_equal(table.values[kept], hourly()[["a", "b"]].to_numpy()[kept])


def test_without_a_grid_no_row_is_inserted() -> None:
    table = Table.read(hourly().drop(index=[4, 5]), grid=False)
    assert len(table.values) == 10
    assert table.frequency is None


def test_columns_can_be_chosen_and_ignored() -> None:
    frame = hourly().assign(city="Jena", c=1.5)
    assert Table.read(frame, columns=["c", "a"]).columns == ("c", "a")
    assert Table.read(frame, columns="b").columns == ("b",)
    assert Table.read(frame, ignore=["city"]).columns == ("a", "b", "c")
    with pytest.raises(DataError, match=r"has no column 'x'; it has date, a, b, city, c\."):
        Table.read(frame, ignore=["x"])


def test_labels_follow_their_rows() -> None:
    table = Table.read(hourly().assign(label=[0] * 11 + [1]).iloc[::-1])
    assert table.columns == ("a", "b")
    assert table.label == "label"
    assert table.labels is not None
    assert table.labels.tolist() == [0] * 11 + [1]


def test_an_array_has_no_names_and_no_times() -> None:
    table = Table.read(np.arange(6.0))
    assert (table.columns, table.times, table.names) == (None, None, ("0",))
    assert table.form.flat


def test_gaps_are_not_filled_from_a_later_piece() -> None:
    values = np.arange(10.0)
    values[4] = np.nan
    table = Table.read(values).fill([range(5), range(5, 10)], "mask")
    assert table.values[:, 0].tolist() == [0, 1, 2, 3, 3, 5, 6, 7, 8, 9]
    assert table.observed is not None
    assert np.flatnonzero(~table.observed[:, 0]).tolist() == [4]


def test_a_cut_holds_the_same_rows_of_everything() -> None:
    table = Table.read(hourly().assign(label=0)).cut(3, 7)
    assert table.times is not None
    assert table.labels is not None
    assert len(table.values) == len(table.order) == len(table.labels) == 4
    assert table.times[0] == np.datetime64("2024-01-01T03:00")


def test_a_panel_is_a_table_for_each_series() -> None:
    parts = [hourly(rows).assign(unique_id=name) for name, rows in (("x", 12), ("y", 8))]
    frame = pd.concat(parts).rename(columns={"date": "ds", "a": "y"}).sample(frac=1, random_state=0)
    panel = Panel.read(pl.from_pandas(frame))
    assert {one.name: len(one.values) for one in panel.series} == {"x": 12, "y": 8}
    for one in panel.series:
        assert one.values[:, 0].tolist() == (np.arange(len(one.values)) / 2).tolist()
    assert panel.form.long
    assert panel.notes == ("Columns not used: b.",)


def test_a_loaded_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    hourly().to_csv(path, index=False)
    loaded = load_source(path)
    path.unlink()
    table = Table.read(loaded)
    assert (table.name, table.where) == ("x", str(path))
    assert table.values.shape == (12, 2)
