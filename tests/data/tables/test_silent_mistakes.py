"""What first users found to be read wrong without a word (S1 and S2-13 of the findings)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm.data import anomaly_data, forecasting_data
from sacm.data.calendar import future_timestamps
from sacm.data.tables.table import Table
from sacm.errors import DataError

WAVE = np.sin(np.arange(700.0)) + 2


def dated(times: Any, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"date": times, "v": WAVE[: len(times)], **columns})


def next_times(table: Table, steps: int = 3) -> list[Any]:
    """The times after the end of a table, as a forecast would give them."""
    if table.times is None:
        ahead: Any = table.form.give(
            np.zeros((1, steps, 1), np.float32), series=["v"], columns=["v"], times=None, rows=0
        )
        return ahead.iloc[:, 0].tolist()
    following = future_timestamps(table.times, steps, frequency=table.frequency)
    return table.form.write_times(following).tolist()


@pytest.mark.parametrize("step", ["D", "B"])
@pytest.mark.parametrize("style", ["%d/%m/%y", "%d-%m-%y", "%d.%m.%y", "%m/%d/%y", "%y-%m-%d"])
def test_s1_1_two_digit_years_are_read_in_one_way(style: str, step: str) -> None:
    days = pd.date_range("2020-01-01", periods=600, freq=step)
    table = Table.read(dated(days.strftime(style)))
    np.testing.assert_array_equal(table.times, days.to_numpy().astype("datetime64[s]"))
    np.testing.assert_array_equal(table.values[:, 0], WAVE[:600].astype(np.float32))


def test_s1_1_days_without_leading_zeros() -> None:
    days = pd.date_range("2020-01-01", periods=100)
    texts = [f"{day.day}/{day.month}/{day.year % 100:02d}" for day in days]
    np.testing.assert_array_equal(Table.read(dated(texts)).times, days.to_numpy())


def test_s1_1_a_reading_that_needs_no_sorting_wins() -> None:
    months = pd.date_range("2019-01-01", periods=40, freq="MS")
    table = Table.read(dated(months.strftime("%d/%m/%Y")))
    np.testing.assert_array_equal(table.times, months.to_numpy())
    assert "day first" in table.notes[0]


def test_s1_1_a_doubt_is_said_and_can_be_settled() -> None:
    frame = dated(pd.date_range("2024-02-01", periods=9, freq="h").strftime("%d/%m/%Y %H:%M"))
    doubtful = Table.read(frame)
    assert "date_order='day first' reads them so" in doubtful.notes[0]
    settled = Table.read(frame, date_order="day first")
    assert settled.times is not None
    assert str(settled.times[0]) == "2024-02-01T00:00:00"


def test_s1_2_the_shampoo_file_has_no_years() -> None:
    months = [f"{year}-{month:02d}" for year in (1, 2, 3) for month in range(1, 13)]
    frame = pd.DataFrame({"Month": months, "Sales": WAVE[:36]})
    with pytest.raises(DataError, match="column 'Month' is not numeric"):
        Table.read(frame)
    with pytest.raises(DataError, match="'1-01', not a date with a year from 1000 to 2999"):
        Table.read(frame, time="Month")


@pytest.mark.parametrize("letter", ["M", "T", "D", "Y"])
def test_s1_2_ids_are_no_dates(letter: str) -> None:
    frame = pd.DataFrame({"id": [f"{letter}{i}" for i in range(30)], "v": WAVE[:30]})
    with pytest.raises(DataError, match="column 'id' is not numeric"):
        Table.read(frame)


@pytest.mark.parametrize("first", [1000, 1650, 2100, 2250, 2300])
@pytest.mark.parametrize("as_text", [True, False])
def test_s1_2_years_beyond_nanoseconds_are_right(first: int, as_text: bool) -> None:
    years = [np.datetime64(f"{first + i}-01-01", "s") for i in range(400)]
    times = [str(year)[:10] for year in years] if as_text else np.array(years)
    table = Table.read(dated(times))
    np.testing.assert_array_equal(table.times, np.array(years))
    assert next_times(table, 1)[0].year == first + 400


def test_s1_2_dates_without_a_year_are_refused() -> None:
    with pytest.raises(DataError, match="holds 'May 1', not a date with a year"):
        Table.read(dated([f"May {day}" for day in range(1, 51)]))
    with pytest.raises(DataError, match="'Jan-01', not a date with a year"):
        Table.read(dated([f"Jan-{day:02d}" for day in range(1, 31)]))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "UTC"])
@pytest.mark.parametrize("step", ["h", "D"])
def test_s1_3_an_offset_in_a_file_goes_out_again(tmp_path: Path, zone: str, step: str) -> None:
    times = pd.date_range("2024-05-01", periods=43, freq=step, tz=zone)
    dated(times[:40]).to_csv(tmp_path / "tz.csv", index=False)
    table = Table.read(tmp_path / "tz.csv")
    assert next_times(table) == list(times[40:])
    assert [when.utcoffset() for when in next_times(table)] == [
        when.utcoffset() for when in times[40:]
    ]


def test_s1_3_of_several_offsets_the_last_goes_out() -> None:
    hours = pd.date_range("2024-03-30", periods=63, freq="h", tz="Europe/Berlin")
    table = Table.read(dated([when.isoformat() for when in hours[:60]]))
    assert [when.isoformat() for when in next_times(table)] == [
        when.isoformat() for when in hours[60:]
    ]


NUMBERS = {
    "YYYYMMDD": ("D", lambda when: int(when.strftime("%Y%m%d"))),
    "YYYYMM": ("MS", lambda when: int(when.strftime("%Y%m"))),
    "YYYYMMDDHH": ("h", lambda when: int(when.strftime("%Y%m%d%H"))),
    "YYYYMMDDHHMM": ("15min", lambda when: int(when.strftime("%Y%m%d%H%M"))),
    "epoch s": ("h", lambda when: int(when.timestamp())),
    "epoch ms": ("s", lambda when: int(when.timestamp()) * 10**3),
    "epoch us": ("s", lambda when: int(when.timestamp()) * 10**6),
    "epoch ns": ("s", lambda when: int(when.timestamp()) * 10**9),
}


@pytest.mark.parametrize("style", NUMBERS)
@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("name", ["date", "timestamp", "when"])
def test_s1_5_numbers_are_dates(style: str, kind: str, name: str) -> None:
    step, write = NUMBERS[style]
    times = pd.date_range("2021-11-01", periods=63, freq=step)
    frame = dated([write(when) for when in times[:60]]).rename(columns={"date": name})
    table = Table.read(frame.astype({name: kind}).drop(index=[7, 8]))
    np.testing.assert_array_equal(table.times, times[:60].to_numpy())
    assert table.columns == ("v",)
    assert np.isnan(table.values[7:9]).all()
    assert next_times(table) == [write(when) for when in times[60:]]
    assert any(f"read as dates ({style})" in note for note in table.notes)


def test_s1_5_fractions_of_seconds_since_1970() -> None:
    table = Table.read(dated(1.7e9 + np.arange(50) / 10).rename(columns={"date": "timestamp"}))
    assert table.frequency == "100ms"
    assert str(next_times(table, 1)[0]) == "2023-11-14 22:13:25"


def test_s1_5_a_number_that_is_no_date_among_dates_is_refused() -> None:
    days = pd.date_range("2021-01-20", periods=40).strftime("%Y%m%d").astype(int).to_numpy().copy()
    days[20] = 20210231
    with pytest.raises(DataError, match="row 21 of the time column 'date' holds '20210231'"):
        Table.read(dated(days))


def test_s1_6_a_year_is_the_time() -> None:
    frame = pd.DataFrame({"year": range(1950, 2010), "v": WAVE[:60]})
    table = Table.read(frame)
    assert table.columns == ("v",)
    assert next_times(table) == [2010, 2011, 2012]


@pytest.mark.parametrize("name", ["index", "t", "No", "Step", "row_number"])
def test_s1_6_a_counter_is_no_channel(name: str) -> None:
    counter = np.arange(3, 63)
    frame = pd.DataFrame({name: counter, "v": WAVE[:60], "w": -WAVE[:60]})
    table = Table.read(frame)
    assert table.columns == ("v", "w")
    assert any(repr(name) in note for note in table.notes)
    assert next_times(table) == [63, 64, 65]
    beside = Table.read(frame.assign(date=pd.date_range("2024-01-01", periods=60)))
    assert beside.columns == ("v", "w")
    assert any(f"counts the rows: {name!r}" in note for note in beside.notes)
    assert Table.read(frame, columns=[name, "v"]).columns == (name, "v")


def test_s1_6_another_first_column_that_counts_is_asked_about() -> None:
    table = Table.read(pd.DataFrame({"x": range(60), "v": WAVE[:60]}))
    assert table.columns == ("x", "v")
    assert "Column 'x' rises by one in every row" in table.notes[0]


def test_s1_6_year_month_day_and_hour_are_the_time() -> None:
    hours = pd.date_range("2010-01-01", periods=60, freq="h")
    parts = {part: getattr(hours, part) for part in ("year", "month", "day", "hour")}
    frame = pd.DataFrame({"No": range(1, 61), **parts, "pm2.5": WAVE[:60]})
    table = Table.read(frame)
    assert table.columns == ("pm2.5",)
    np.testing.assert_array_equal(table.times, hours.to_numpy())
    assert any("year, month, day, hour were read as the time" in note for note in table.notes)


def test_s1_6_parts_of_the_calendar_beside_dates_are_left_out() -> None:
    hours = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = dated(hours, hour=hours.hour, weekday=hours.weekday + 1, month=hours.strftime("%Y%m"))
    table = Table.read(frame.astype({"month": int}))
    assert table.columns == ("v",)
    assert {one.name for one in table.left_out} == {"hour", "weekday", "month"}
    other = Table.read(dated(hours, hour=np.arange(60) % 7))
    assert other.columns == ("v", "hour")  # hours of something else
    assert "Column 'hour' was taken as a channel" in other.notes[0]


@pytest.mark.parametrize(
    "name",
    ["label", "anomaly", "changepoint", "outlier", "Attack_label", "isAnomaly", "is_anomaly"],
)
def test_s1_7_labels_are_no_channels(name: str) -> None:
    frame = dated(pd.date_range("2024-01-01", periods=60), **{name: [0] * 50 + [1] * 10})
    data = forecasting_data(frame)
    assert data.columns == ("v",)
    assert any(f"Column {name!r} was taken as labels" in note for note in data.notes)
    assert anomaly_data(frame).labels.sum() == 10
    assert forecasting_data(frame, columns=["v", name]).columns == ("v", name)


def test_s1_7_of_two_columns_of_labels_one_is_used_and_none_is_a_channel() -> None:
    frame = dated(
        pd.date_range("2024-01-01", periods=60, freq="s"),
        anomaly=[0.0] * 50 + [1.0] * 10,
        changepoint=[0.0] * 50 + [1.0] + [0.0] * 9,
    )
    data = anomaly_data(frame)
    assert data.columns == ("v",)
    assert data.labels.sum() == 10
    assert any("looks like labels: 'changepoint'" in note for note in data.notes)
    assert anomaly_data(frame, label_column="changepoint").labels.sum() == 1


def test_s1_7_labels_in_words() -> None:
    words = ["Normal"] * 50 + ["Attack"] * 10
    data = anomaly_data(dated(pd.date_range("2024-01-01", periods=60), **{"Normal/Attack": words}))
    assert data.labels.tolist() == [0] * 20 + [1] * 10


def test_s1_7_many_values_are_no_labels() -> None:
    table = Table.read(dated(pd.date_range("2024-01-01", periods=60), fault_current=WAVE[:60]))
    assert table.columns == ("v", "fault_current")
    assert "has the name of labels but many values" in table.notes[0]


@pytest.mark.parametrize("step", [1, 90])
def test_s2_13_durations_are_not_of_today(step: int) -> None:
    texts = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(0, 63 * step, step)]
    table = Table.read(dated(texts[:60]).rename(columns={"date": "time"}))
    assert table.times is None
    assert "holds durations, not dates" in table.notes[0]
    assert next_times(table) == texts[60:]


def test_what_was_understood_is_said() -> None:
    hours = pd.date_range("2024-01-01", periods=60, freq="h", tz="Europe/Berlin")
    frame = dated(hours, No=range(60), anomaly=[0] * 59 + [1]).drop(index=[5, 6])
    assert Table.read(frame.assign(city="Jena"), ignore="city").understood() == [
        "time: column 'date' (time=), read as timestamps, step h (frequency=), 2024-01-01 "
        "00:00:00+01:00 to 2024-01-03 11:00:00+01:00, zone Europe/Berlin (zone=), kept in UTC",
        "rows: 60, 2 of them inserted because their times were missing",
        # Two rows are missing, so No no longer counts.
        "channels (2, columns= and ignore= choose): v, No",
        "labels: column 'anomaly' (label=)",
        "left out: column 'city', not wanted",
    ]
