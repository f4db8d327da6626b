"""Several series in one table or folder, whatever their id is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm.data import forecasting_data
from sacm.data.own.series import read_series
from sacm.data.tables.panel import Panel
from sacm.data.tables.table import Table
from sacm.errors import DataError

DAYS = pd.date_range("2024-01-01", periods=60)


def long_table(lengths: dict[Any, int], id: str = "shop") -> pd.DataFrame:
    parts = [
        pd.DataFrame({id: name, "day": DAYS[:rows], "sales": np.arange(rows) + 100.0 * place})
        for place, (name, rows) in enumerate(lengths.items())
    ]
    return pd.concat(parts, ignore_index=True)


def read_panel(source: Any, **options: Any) -> Panel:
    found = read_series(source, **options)
    assert isinstance(found, Panel)
    return found


@pytest.mark.parametrize("id", ["shop", "Kostenstelle", "unique_id"])
def test_words_beside_times_that_repeat_are_an_id(id: str) -> None:
    panel = read_panel(long_table({"north": 60, "south": 40}, id))
    assert [(one.name, len(one.values)) for one in panel.series] == [("north", 60), ("south", 40)]
    assert f"Column {id!r} was taken to tell 2 series apart" in panel.notes[0]
    assert panel.understood()[1].startswith(f"series (2, by column {id!r}, id= names another)")


def test_numbers_are_an_id_only_by_name() -> None:
    assert len(read_panel(long_table({1: 60, 2: 40}, "store")).series) == 2
    with pytest.raises(DataError, match="have the same timestamp"):
        read_series(long_table({1: 60, 2: 40}, "pressure"))
    assert len(read_panel(long_table({1: 60, 2: 40}, "pressure"), id="pressure").series) == 2


def test_one_series_with_words_is_no_panel() -> None:
    frame = long_table({"north": 60})
    with pytest.raises(DataError, match="column 'shop' is not numeric"):
        read_series(frame)
    assert isinstance(read_series(frame, ignore="shop"), Table)


def test_two_columns_tell_series_apart_together() -> None:
    frame = pd.concat([long_table({"a": 30, "b": 20}).assign(item=item) for item in (1, 2)])
    panel = read_panel(frame, id=["shop", "item"])
    assert [one.name for one in panel.series] == ["a/1", "b/1", "a/2", "b/2"]
    assert panel.form.id == "shop/item"


def test_every_series_may_have_several_channels() -> None:
    frame = long_table({"north": 60, "south": 40})
    data = forecasting_data(frame.assign(price=frame["sales"] / 7), id="shop", target="sales")
    assert data.columns == ("sales", "price")
    assert data.target == ("sales",)
    counted = data.counted
    assert counted is not None
    assert counted.all(axis=0).tolist() == [True, False]
    assert {segment.name for segment in data.segments} == {"north", "south"}


def test_series_that_share_their_times_are_channels_side_by_side() -> None:
    data = forecasting_data(long_table({"north": 60, "south": 60}))
    assert data.columns == ("north", "south")
    np.testing.assert_array_equal(data.values[:, 1] - data.values[:, 0], 100)


def test_a_row_without_an_id_is_named() -> None:
    frame = long_table({"north": 6, "south": 4})
    frame.loc[7, "shop"] = None
    with pytest.raises(DataError, match="row 8 has no shop"):
        read_series(frame, id="shop")


def test_a_series_in_every_row() -> None:
    frame = pd.DataFrame({"id": ["M1", "M2"], "V1": [1.0, 5.0], "V2": [2.0, 6.0], "V3": [3, None]})
    panel = read_panel(frame, id="id")
    assert [one.values[:, 0].tolist() for one in panel.series] == [[1, 2, 3], [5, 6]]
    assert "Every row of the table was read as one series" in panel.notes[0]


def test_a_folder_of_files(tmp_path: Path) -> None:
    for name, rows in {"north": 60, "south": 40}.items():
        table = long_table({name: rows}).drop(columns="shop")
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "read.me").write_text("not a table")
    panel = read_panel(tmp_path)
    assert [(one.name, len(one.values)) for one in panel.series] == [("north", 60), ("south", 40)]
    assert panel.form.id == "file"
    (tmp_path / "west.csv").write_text("day,weather\n2024-01-01,1\n")
    with pytest.raises(DataError, match=r"is a folder of files with different columns: west\.csv"):
        read_series(tmp_path)


def test_dates_of_all_series_are_read_in_one_way() -> None:
    frame = long_table({"north": 60, "south": 10})
    frame["day"] = frame["day"].dt.strftime("%d/%m/%y")
    panel = read_panel(frame)
    for one in panel.series:
        np.testing.assert_array_equal(one.times, DAYS[: len(one.values)].to_numpy())


@pytest.mark.parametrize("id", ["shop", None])
def test_numbers_that_are_dates_repeat_from_series_to_series(id: str | None) -> None:
    frame = long_table({"north": 60, "south": 40}).rename(columns={"day": "zeit"})
    frame["zeit"] = frame["zeit"].astype("datetime64[ns]").astype(np.int64)
    panel = read_panel(frame[["shop", "sales", "zeit"]], id=id)
    assert panel.names == ("sales",)
    np.testing.assert_array_equal(panel.series[1].times, DAYS[:40].to_numpy())
