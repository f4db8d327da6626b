from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sacm.data import forecasting_data
from sacm.errors import DataError


def values_at(stamps) -> pd.DataFrame:
    return pd.DataFrame({"date": stamps, "load": np.arange(len(stamps), dtype=float)})


DAYS = pd.date_range("2024-03-20", periods=40, freq="D", tz="Europe/Berlin")  # summer time begins


@pytest.mark.parametrize("text", [False, True])
def test_local_days_are_even_when_the_clock_is_put_forward(text):
    stamps = DAYS.map(lambda day: day.isoformat()) if text else DAYS
    data = forecasting_data(values_at(stamps))
    assert data.frequency == "D"
    offsets = ("The offsets change as in Europe/Berlin: zone= names another.",) if text else ()
    assert data.notes == (*offsets, "Timestamps are taken by the local clock.")
    np.testing.assert_array_equal(data.timestamps, DAYS.tz_localize(None).to_numpy())


def test_days_without_such_a_change_are_read_alike():
    data = forecasting_data(values_at(DAYS[20:]))
    np.testing.assert_array_equal(data.timestamps, DAYS[20:].tz_localize(None).to_numpy())


def test_hours_stay_in_utc():
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    data = forecasting_data(values_at(hours))
    assert data.frequency == "h"
    assert data.notes == ("Timestamps were converted to UTC.",)
    utc = hours.tz_convert("UTC").tz_localize(None)
    np.testing.assert_array_equal(data.timestamps, utc.to_numpy())


def test_days_of_utc_stay_in_utc_whatever_zone_shows_them():
    days = pd.date_range("2024-03-20", periods=40, freq="D", tz="UTC")
    data = forecasting_data(values_at(days.tz_convert("Europe/Berlin")))
    np.testing.assert_array_equal(data.timestamps, days.tz_localize(None).to_numpy())


@pytest.mark.parametrize("days", [5, 40])  # month first: uneven, impossible
@pytest.mark.parametrize("style", ["%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M"])
def test_day_first_is_tried_where_month_first_makes_no_sense(days, style):
    hours = pd.date_range("2024-02-01", periods=24 * days, freq="h")
    data = forecasting_data(values_at(hours.strftime(style)))
    assert data.frequency == "h"
    np.testing.assert_array_equal(data.timestamps, hours.to_numpy())
    assert "day first (01" in data.notes[0]
    assert "as 2024-02-01 00:00:00" in data.notes[0]


def test_month_first_stays_where_it_makes_sense():
    hours = pd.date_range("2024-02-01", periods=24 * 40, freq="h")
    data = forecasting_data(values_at(hours.strftime("%m/%d/%Y %H:%M")))
    np.testing.assert_array_equal(data.timestamps, hours.to_numpy())
    assert data.notes == ()


def test_dates_that_make_sense_in_neither_way_are_refused():
    stamps = ["01/02/2024", "02/02/2024", "40/02/2024", "04/02/2024"]
    with pytest.raises(DataError, match="row 3 of the time column 'date' holds '40/02/2024'"):
        forecasting_data(values_at(stamps))


def test_the_hour_of_a_clock_put_back_is_explained():
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    with pytest.raises(
        DataError, match="if the clock was put back there, zone= names its time zone"
    ):
        forecasting_data(values_at(hours.tz_localize(None)))
    days = pd.date_range("2024-01-01", periods=30).repeat(2)
    with pytest.raises(DataError, match=r"or give each series a unique_id\.$"):
        forecasting_data(values_at(days))
