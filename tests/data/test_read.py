"""Files as people have them: what a reader understands, and which option a refusal names."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sacm.data import forecasting_data
from sacm.data.read import read_table
from sacm.errors import DataError

COUNT = 72
HOURS = pd.date_range("2024-01-01", periods=COUNT, freq="h")
LOAD = np.round(20 + 5 * np.sin(np.arange(COUNT) / 4), 3)
FRAME = pd.DataFrame({"date": HOURS, "load": LOAD})
CSV = FRAME.to_csv(index=False)
LINES = CSV.splitlines()


def rows(dates: Any, separator: str = ",", name: str = "date") -> str:
    """A text with these dates and the values of `LOAD`."""
    pairs = zip(dates, LOAD, strict=False)
    body = "".join(f"{date}{separator}{value}\n" for date, value in pairs)
    return f"{name}{separator}load\n{body}"


MONTHS = pd.date_range("1995-01-01", periods=COUNT, freq="MS")
READ_RIGHT = {
    "plain": CSV,
    "title lines and an empty one": "Export of plant 7\nMade on: 2024-05-05\n\n" + CSV,
    "a row of units": "\n".join([LINES[0], ",kW", *LINES[1:]]),
    "a footnote": CSV + '\n"Source: the plant"\n',
    "a total": CSV + f"Total,{LOAD.sum():.3f}\n",
    "empty rows": "\n".join(x for line in LINES for x in (line, ",")),
    "the header again": "\n".join([*LINES[:30], LINES[0], *LINES[30:]]),
    "a line that names the separator": "sep=;\n" + FRAME.to_csv(index=False, sep=";"),
    "bars": FRAME.to_csv(index=False, sep="|"),
    "line ends and byte order mark of Windows": "\ufeff" + CSV.replace("\n", "\r\n") + "\r\n",
    "tabs": FRAME.to_csv(index=False, sep="\t"),
    "blanks": "date load\n" + "".join(f"{a:%Y-%m-%dT%H:%M} {b}\n" for a, b in FRAME.values),
    "line ends of old computers": CSV.replace("\n", "\r"),
    "an index that was saved": FRAME.to_csv(),
    "exact duplicates": CSV + "\n".join(LINES[3:6]) + "\n",
    "rows from new to old": "\n".join([LINES[0], *LINES[:0:-1]]),
    "day first": rows(HOURS.strftime("%d.%m.%Y %H:%M")),
    "month first": rows(HOURS.strftime("%m/%d/%Y %I:%M %p")),
    "names of months": rows(HOURS.strftime("%d %B %Y %H:%M")),
    "a weekday": rows(HOURS.strftime("%a %Y-%m-%d %H:%M")),
    "24:00": rows(
        f"{x - pd.Timedelta('1h'):%Y-%m-%d} {(x - pd.Timedelta('1h')).hour + 1}:00" for x in HOURS
    ),
    "intervals": rows(f"{x:%d.%m.%Y %H:%M} - {x + pd.Timedelta('1h'):%H:%M}" for x in HOURS),
    "dots in the clock": rows(HOURS.strftime("%Y-%m-%d %H.%M.%S")),
    "date and hour": rows(HOURS.strftime("%Y-%m-%d,%H"), name="date,hour"),
    "date and HHMM": rows(HOURS.strftime("%Y%m%d,%H%M"), name="YYYYMMDD,HHMM"),
    "year and day of year": rows(HOURS.strftime("%Y,%j,%H"), name="year,doy,hour"),
    "seconds since 1970": rows(x.value // 10**9 for x in HOURS),
    "days of a spreadsheet": rows(
        (HOURS - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D"), name="date"
    ),
    "times a little off": rows(
        (HOURS + pd.to_timedelta(np.arange(COUNT) ** 2 * 13 % 900, "ms")).astype(str)
    ),
    "decimal commas": rows(HOURS, ";").replace(".", ","),
    "a currency": FRAME.assign(load=[f"${x}" for x in LOAD]).to_csv(index=False),
    "comments before and between": "# plant 7\n# lat: 1, lon: 2\n"
    + "\n".join([*LINES[:30], "# a new sensor", *LINES[30:]]),
    "a title with a date beside it": "Plant 7,\nMade on,01.03.2024\n,\n" + CSV,
    "facts before the table": "lat,lon\n52.5,13.4\n\n" + CSV,
    "a footnote with commas": CSV + "\nLoad of the plant, hourly, 2024\n",
    "blanks below a comment": "# date load\n"
    + "".join(f"{a:%Y-%m-%dT%H:%M} {b}\n" for a, b in FRAME.values),
    "ISO without signs": rows(HOURS.strftime("%Y%m%dT%H%M%SZ")),
    "as servers log": rows(HOURS.strftime("%d/%b/%Y:%H:%M:%S")),
    "Italian": rows(f"{x.day} gennaio {x:%Y %H:%M}" for x in HOURS),
    "Spanish": rows(f"{x.day} de enero de {x:%Y %H:%M}" for x in HOURS),
    "date and HHMMSS": rows(HOURS.strftime("%Y%m%d,%H%M%S"), name="date,time"),
    "date and interval": rows(
        (f"{x:%Y-%m-%d},{x:%H:%M}-{x + pd.Timedelta('1h'):%H:%M}" for x in HOURS), name="day,hour"
    ),
    "days of MATLAB": rows((x.value / 86400e9 + 719529 for x in HOURS), name="datenum"),
    "units": FRAME.assign(load=[f"{x} kW" for x in LOAD]).to_csv(index=False),
}


@pytest.mark.parametrize("name", READ_RIGHT)
def test_read_right(name: str, tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text(READ_RIGHT[name])
    table = read_table(path)
    assert table.names == ("load",)
    np.testing.assert_array_equal(table.times.astype("datetime64[s]"), HOURS.to_numpy("M8[s]"))
    np.testing.assert_allclose(table.values[:, 0], LOAD)
    assert table.step == "h"


@pytest.mark.parametrize(
    ("dates", "step"),
    [
        (MONTHS.strftime("%YM%m"), "MS"),
        (MONTHS.strftime("%Y-%m"), "MS"),
        (MONTHS.strftime("%b-%y"), "MS"),
        (MONTHS.strftime("%Y%m"), "MS"),
        (
            [f"{x.year}Q{x.quarter}" for x in pd.date_range("1995", periods=COUNT, freq="QS")],
            "QS-OCT",
        ),
        ([f"{1900 + k}" for k in range(COUNT)], "YS-JAN"),
        ([f"2015-W{k:02d}" for k in range(2, 50)], "W-MON"),
    ],
)
def test_months_quarters_years_and_weeks(dates: Any, step: str, tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text(rows(dates, name="period"))
    table = read_table(path)
    assert table.step == step
    assert table.names == ("load",)


@pytest.mark.parametrize("ending", ["json", "jsonl", "feather", "parquet", "csv.gz", "zip"])
def test_containers(ending: str, tmp_path: Path):
    path = tmp_path / f"x.{ending}"
    records = FRAME.assign(date=FRAME["date"].astype(str)).to_dict("records")
    if ending == "json":
        path.write_text(json.dumps(records))
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif ending == "feather":
        FRAME.to_feather(path)
    elif ending == "parquet":
        FRAME.to_parquet(path)
    elif ending == "csv.gz":
        path.write_bytes(gzip.compress(CSV.encode()))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", CSV)
    np.testing.assert_allclose(read_table(path).values[:, 0], LOAD)


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


TWICE = CSV + "2024-01-01 05:00:00,99\n"
UNEVEN = rows(HOURS + pd.to_timedelta(np.arange(COUNT) * 37 % 50, "min"))
REFUSED = {
    "a time twice": (TWICE, "--duplicates mean", {"duplicates": "mean"}),
    "another code page": (
        CSV.replace("load", "温度").encode("shift_jis"),
        "--encoding",
        {"encoding": "shift_jis"},
    ),
    "thousands or fractions": (
        FRAME.assign(load=[f"{x * 1000:,.0f}" for x in LOAD]).to_csv(index=False),
        "--decimal .",
        {"decimal": "."},
    ),
    "dates in two ways": (
        rows([f"01/02/{2000 + k}" for k in range(9)]),
        "--date-order day",
        {"date_order": "day"},
    ),
    "words with numbers in them": (
        FRAME.assign(load=["<90" if k % 9 == 0 else f"{x}1" for k, x in enumerate(LOAD)]).to_csv(
            index=False
        ),
        "--na '<90'",
        {"na": "<90"},
    ),
    "dates that are not known": (
        rows(f"{x:%d} tammikuuta 2024 {x:%H:%M}" for x in HOURS),
        "--ignore date",
        {"ignore": "date"},
    ),
    "one row without a date": (
        CSV.replace("2024-01-02 05:00:00", "later"),
        "--na later",
        {"na": "later"},
    ),
    "years of days": (
        rows((2001 + k // 24 for k in range(COUNT)), name="Year"),
        "--ignore Year",
        {"ignore": "Year"},
    ),
    "hours that may be series": (
        rows(HOURS.strftime("%Y-%m-%d,") + (HOURS.hour + 1).astype(str), name="date,slot"),
        "--time-column date,… joins",
        {"time": "date,slot"},
    ),
    "an id that repeats a time": (
        rows(
            [
                *HOURS[:36].strftime("%Y-%m-%d %H:%M,a"),
                *HOURS[:35].strftime("%Y-%m-%d %H:%M,b"),
                "2024-01-01 00:00,b",
            ],
            name="date,shop",
        ),
        "--id names the columns of several series",
        {"id": "shop", "duplicates": "mean"},
    ),
    "half of the rows missing": (
        "\n".join([*LINES[:21], *LINES[24::4]]),
        "--frequency h",
        {"frequency": "h"},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_option_that_helps(name: str, tmp_path: Path):
    text, option, options = REFUSED[name]
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert option in str(caught.value)
    assert read_table(path, options).values.shape[1] == 1


def test_naive_and_aware_times_are_not_mixed(tmp_path: Path):
    dates = [*HOURS[:30].astype(str), *(f"{x:%Y-%m-%dT%H:%M:%S}Z" for x in HOURS[30:])]
    with pytest.raises(DataError, match=r"row 31 .* holds .*Z', which cannot be read"):
        read_table(write(tmp_path, rows(dates)))


def test_words_are_left_out_and_can_become_inputs(tmp_path: Path):
    frame = FRAME.assign(weather=np.where(LOAD > 20, "sun", "rain"), note=[f"n{k}" for k in HOURS])
    path = write(tmp_path, frame.to_csv(index=False))
    table = read_table(path)
    assert table.names == ("load",)
    assert any("weather" in note and "--category" in note for note in table.notes)
    coded = read_table(path, {"category": "weather"})
    assert coded.names == ("load", "weather=rain", "weather=sun")
    np.testing.assert_array_equal(coded.values[:, 2], (LOAD > 20).astype(float))


def test_a_clock_that_was_put_back_is_no_error(tmp_path: Path):
    local = pd.date_range("2024-10-26", periods=COUNT, freq="h", tz="Europe/Berlin")
    path = write(tmp_path, rows(local.strftime("%Y-%m-%d %H:%M")))
    table = read_table(path)
    assert len(table.values) == COUNT - 1
    assert any("clock showed twice" in note for note in table.notes)
    assert len(read_table(path, {"zone": "Europe/Berlin"}).values) == COUNT


def test_constant_columns_stay_and_codes_are_proposed(tmp_path: Path):
    frame = FRAME.assign(stuck=5.0, broken=np.where(np.arange(COUNT) % 9, LOAD, -9999))
    path = write(tmp_path, frame.to_csv(index=False))
    table = read_table(path)
    assert table.names == ("load", "stuck", "broken")
    assert any("'broken' is -9999" in note and "--na -9999" in note for note in table.notes)
    assert np.isnan(read_table(path, {"na": "-9999"}).values[:, 2]).sum() == 8


def test_gap_words_are_gaps(tmp_path: Path):
    words = ["Bad Input" if k % 9 == 0 else "---" if k % 7 == 0 else x for k, x in enumerate(LOAD)]
    table = read_table(write(tmp_path, FRAME.assign(load=words).to_csv(index=False)))
    expected = [k % 9 == 0 or k % 7 == 0 for k in range(COUNT)]
    assert np.isnan(table.values[:, 0]).tolist() == expected


def test_a_series_in_every_row(tmp_path: Path):
    years = [str(year) for year in range(1960, 2020)]
    wide = pd.DataFrame(np.arange(120.0).reshape(2, 60) + 0.5, columns=years)
    wide.insert(0, "country", ["A", "B"])
    table = read_table(write(tmp_path, wide.to_csv(index=False)))
    assert [name for name, *_ in table.series] == ["A", "B"]
    assert table.step == "YS-JAN"
    np.testing.assert_allclose(table.values[60:, 0], np.arange(60, 120) + 0.5)


def test_series_are_told_apart_by_the_column_that_repeats_no_time(tmp_path: Path):
    both = pd.concat([FRAME.assign(site=s, load=LOAD + k) for k, s in enumerate("AB")])
    table = read_table(write(tmp_path, both.sample(frac=1, random_state=0).to_csv(index=False)))
    by_name = {name: table.values[start:stop, 0] for name, start, stop in table.series}
    np.testing.assert_allclose(by_name["A"], LOAD)
    np.testing.assert_allclose(by_name["B"], LOAD + 1)


def test_more_than_a_tenth_of_inserted_rows_names_the_option(tmp_path: Path):
    kept = [LINES[0], *(line for k, line in enumerate(LINES[1:]) if k % 5)]
    table = read_table(write(tmp_path, "\n".join(kept[:1] + LINES[1:4] + kept[4:])))
    assert any("--resample" in note for note in table.notes)
    assert (table.order < 0).sum() > 0


def test_many_rows_are_read_about_as_fast_as_pandas_reads_them(tmp_path: Path):
    import time

    count = 200_000
    path = tmp_path / "long.csv"
    stamps = pd.date_range("2020", periods=count, freq="min")
    values = np.random.default_rng(0).normal(size=(count, 2)).round(4)
    pd.DataFrame(values, columns=["a", "b"]).assign(date=stamps).to_csv(path, index=False)
    started = time.process_time()
    pd.read_csv(path)
    plain = time.process_time() - started
    started = time.process_time()
    table = read_table(path)
    assert len(table.values) == count
    assert time.process_time() - started < 8 * plain  # about 2.5 on an idle machine


# What a new user met: each finding about reading.


def excel(path: Path, **sheets: list[list[Any]]) -> Path:
    """An Excel file with these rows of cells in its sheets."""
    with pd.ExcelWriter(path) as writer:
        for name, cells in sheets.items():
            pd.DataFrame(cells).to_excel(writer, sheet_name=name, index=False, header=False)
    return path


BODY = [["date", "load"], *([str(hour), value] for hour, value in zip(HOURS, LOAD, strict=True))]


def test_columns_that_begin_late_or_end_early_are_named_with_their_dates():
    late, early = np.where(np.arange(COUNT) < 40, np.nan, LOAD), LOAD.copy()
    early[50:] = np.nan
    data = forecasting_data(FRAME.assign(late=late, early=early), split=(0.8, 0.1, 0.1))
    said = " ".join(data.notes)
    assert "begin late: 'late' at 2024-01-02T16:00:00" in said
    assert "end early: 'early' at 2024-01-03T01:00:00" in said


def test_sheets_of_an_excel_file_are_named_and_chosen(tmp_path: Path):
    path = excel(tmp_path / "x.xlsx", Jan=BODY, Feb=BODY[:40])
    with pytest.raises(DataError, match="2 sheets, Jan, Feb: --sheet Jan"):
        read_table(path)
    assert len(read_table(path, {"sheet": "Feb"}).values) == 39


def test_empty_rows_are_no_rows_and_year_and_month_are_the_time(tmp_path: Path):
    lines = [f"{x.year},{x.month},{v}" for x, v in zip(MONTHS, LOAD, strict=True)]
    blocks = [line for k, line in enumerate(lines) for line in ([line, ",,"] if k % 12 else [line])]
    table = read_table(write(tmp_path, "\n".join(["Year,Month,CO2", *blocks])))
    assert (table.names, table.step, len(table.values)) == (("CO2",), "MS", COUNT)


@pytest.mark.parametrize("month", ["%b", "%B", "%m"])
def test_year_and_month_are_one_time_and_no_ids(month: str, tmp_path: Path):
    text = rows(MONTHS.strftime(f"%Y,{month}"), name="Year,Month")
    table = read_table(write(tmp_path, text))
    assert (table.step, table.names, len(table.series)) == ("MS", ("load",), 1)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("%Y-%m-%d,1,%H", "date,season,hr"),
        ("%d/%m/%Y,%H.%M.%S", "Date,Time"),
    ],
)
def test_dates_and_hours_in_columns_of_their_own_are_no_channels(
    form: str, names: str, tmp_path: Path
):
    table = read_table(write(tmp_path, rows(HOURS.strftime(form), name=names)))
    assert table.step == "h"
    assert set(table.names) - {"season"} == {"load"}


@pytest.mark.parametrize("period", ["Q0{quarter}", "M{month:02d}"])
def test_periods_beside_a_year_are_the_time(period: str, tmp_path: Path):
    freq = "QS" if period.startswith("Q") else "MS"
    dates = pd.date_range("1995", periods=COUNT, freq=freq)
    written = [f"{x.year},{period.format(quarter=x.quarter, month=x.month)}" for x in dates]
    table = read_table(write(tmp_path, rows(written, name="Year,Period")))
    assert len(table.series) == 1
    np.testing.assert_array_equal(table.times.astype("M8[s]"), dates.to_numpy("M8[s]"))


def test_half_of_the_rows_invented_is_an_error_in_training_and_a_note_before(tmp_path: Path):
    quarters = pd.date_range("2024-01-04", periods=99, freq="15min")
    mixed = [*HOURS.astype(str), *quarters.astype(str)]
    text = "date,load\n" + "".join(f"{x},{k % 7}\n" for k, x in enumerate(mixed))
    with pytest.raises(DataError, match="half of all or more: --resample h"):
        read_table(write(tmp_path, text))
    table = read_table(write(tmp_path, text), grid=False)
    assert (table.step, len(table.values)) == (None, len(mixed))
    assert any("--resample h" in note for note in table.notes)


def test_other_code_pages_are_said_or_asked_for(tmp_path: Path):
    western = read_table(write(tmp_path, CSV.replace("load", "Größe €").encode("cp1252")))
    assert western.names == ("Größe €",)
    assert any("cp1252 (--encoding)" in note for note in western.notes)
    path = write(tmp_path, CSV.replace("load", "温度").encode("gb18030"))
    with pytest.raises(DataError, match=r"--encoding names its code page, .* gb18030"):
        read_table(path)
    assert read_table(path, {"encoding": "gb18030"}).names == ("温度",)


def test_hours_that_a_clock_shows_twice_do_not_stop_an_energy_file(tmp_path: Path):
    hours = pd.date_range("2004-10-01 01:00", "2006-11-30", freq="h")
    twice = pd.DatetimeIndex(["2004-10-31 02:00", "2005-10-30 02:00", "2006-10-29 02:00"])
    frame = pd.DataFrame({"Datetime": [*hours, *twice]})
    frame["MW"] = np.arange(len(frame)) % 24
    table = read_table(write(tmp_path, frame.to_csv(index=False)))
    assert (table.step, len(table.values)) == ("h", len(hours))
    assert any("clock showed twice" in note for note in table.notes)


def test_a_series_in_every_row_with_numbered_columns(tmp_path: Path):
    wide = pd.DataFrame([["W1", *LOAD], ["W2", *LOAD[:20], *[None] * 52]])
    wide.columns = pd.Index([f"V{k + 1}" for k in range(COUNT + 1)])
    table = read_table(write(tmp_path, wide.to_csv(index=False)))
    assert [(name, stop - start) for name, start, stop in table.series] == [("W1", 72), ("W2", 20)]
    np.testing.assert_allclose(table.values[:COUNT, 0], LOAD)


@pytest.mark.parametrize("before", [["Export of plant 7"], ["", "Plant A"]])
def test_excel_files_with_a_title_or_a_merged_header(before: list[str], tmp_path: Path):
    table = read_table(excel(tmp_path / "x.xlsx", Data=[before, *BODY]))
    assert (table.names, table.step) == (("load",), "h")


def test_months_that_are_absent_from_a_panel_are_gaps(tmp_path: Path):
    frames = [pd.DataFrame({"market": m, "date": MONTHS, "price": LOAD}) for m in "AB"]
    panel = pd.concat([frames[0], frames[1].drop(index=[3, 4, 30])])
    table = read_table(write(tmp_path, panel.to_csv(index=False)))
    assert (table.step, (table.order < 0).sum(), len(table.series)) == ("MS", 3, 2)


def test_irregular_rows_are_resampled_by_the_option_that_the_error_names(tmp_path: Path):
    path = write(tmp_path, UNEVEN)
    with pytest.raises(DataError) as caught:
        read_table(path)
    proposed = re.search(r"--resample (\S+)", str(caught.value))[1]
    assert read_table(path, {"resample": proposed}).step == proposed
    assert "--resample" in " ".join(read_table(path, grid=False).notes)


def test_one_series_without_a_value_is_left_out_by_name():
    frame = FRAME.assign(micronesia=np.where(np.arange(COUNT) < 60, np.nan, 1.0))
    data = forecasting_data(frame)
    assert data.columns == ("load",)
    assert any("no value in the training rows: micronesia" in note for note in data.notes)


@pytest.mark.parametrize(
    "held",
    [
        {"latitude": 1.5, "hourly": {"time": list(map(str, HOURS)), "load": list(LOAD)}},
        {"status": "ok", "data": FRAME.astype({"date": str}).to_dict("records")},
        json.loads(FRAME.to_json(orient="split", date_format="iso")),
        json.loads(FRAME.to_json(date_format="iso")),
        {str(date): {"load": load} for date, load in zip(HOURS, LOAD, strict=True)},
        [[date.value // 10**6, load] for date, load in zip(HOURS, LOAD, strict=True)],
    ],
)
def test_tables_inside_json(held: Any, tmp_path: Path):
    table = read_table(write(tmp_path, json.dumps(held)))
    assert table.step == "h"
    np.testing.assert_allclose(table.values[:, 0], LOAD)


def test_all_columns_of_words_are_named_at_once(tmp_path: Path):
    frame = FRAME.assign(city="Bonn", state=[f"s{k}" for k in range(COUNT)], kind="a")
    table = read_table(write(tmp_path, frame.to_csv(index=False)))
    assert table.names == ("load",)
    assert any("'city', 'state', 'kind'" in note for note in table.notes)


def test_an_hour_that_spring_skips_names_the_zone(tmp_path: Path):
    local = pd.date_range("2024-03-30", periods=COUNT, freq="h", tz="Europe/Berlin")
    path = write(tmp_path, rows(local.strftime("%Y-%m-%d %H:%M")))
    assert any("--zone names the time zone" in note for note in read_table(path).notes)
    assert (read_table(path, {"zone": "Europe/Berlin"}).order >= 0).all()


def test_a_year_that_was_mistyped_is_named_with_its_row(tmp_path: Path):
    dates = [*HOURS[:30].astype(str), "2042-01-02 06:00:00", *HOURS[31:].astype(str)]
    with pytest.raises(DataError, match=r"2042-01-02 06:00:00 \(row 31\) is far from"):
        read_table(write(tmp_path, rows(dates)))


def test_a_clock_of_twelve_hours_without_am_and_pm_is_not_merged(tmp_path: Path):
    path = write(tmp_path, rows(HOURS.strftime("%Y-%m-%d %I:%M")))
    with pytest.raises(DataError, match=r"have the same time, .*: --ignore date takes rows in"):
        read_table(path)
    assert len(read_table(path, {"ignore": "date"}).values) == COUNT


def test_numbers_that_are_no_known_time_only_give_the_order(tmp_path: Path):
    text = rows([f"{5_000_000 + k / 24:.8f}" for k in range(COUNT)])
    table = read_table(write(tmp_path, text))
    assert (table.names, table.times) == (("load",), None)
    assert any("only counts the rows: date" in note for note in table.notes)


def test_a_header_without_a_name_for_the_names_of_rows(tmp_path: Path):
    text = '"a" "b"\n' + "".join(f'"row {k}" {k % 5} {v}\n' for k, v in enumerate(LOAD))
    table = read_table(write(tmp_path, text))
    assert table.names == ("a", "b")
    np.testing.assert_allclose(table.values[:, 1], LOAD)


def test_a_last_column_without_a_name_shifts_no_other_name(tmp_path: Path):
    text = CSV.replace("\n", ",ok\n").replace("load,ok", "load", 1)
    table = read_table(write(tmp_path, text))
    assert table.names == ("load",)
    np.testing.assert_allclose(table.values[:, 0], LOAD)


def test_dates_of_unequal_length_in_the_header(tmp_path: Path):
    days = pd.date_range("2020-01-22", periods=COUNT)
    header = ",".join(f"{x.month}/{x.day}/{x:%y}" for x in days)
    text = f"State,Country,Lat,{header}\n" + "".join(
        f",{name},{k}.5,{','.join(map(str, LOAD + k))}\n" for k, name in enumerate("AB")
    )
    table = read_table(write(tmp_path, text))
    assert ([name for name, *_ in table.series], table.step) == (["A", "B"], "D")
    np.testing.assert_allclose(table.values[COUNT:, 0], LOAD + 1)


def test_two_columns_that_tell_series_apart_are_named(tmp_path: Path):
    parts = [FRAME.assign(store=s, item=i, load=LOAD + s + i) for s in (1, 2) for i in (1, 2)]
    path = write(tmp_path, pd.concat(parts).to_csv(index=False))
    with pytest.raises(DataError, match="--id names the columns of several series"):
        read_table(path)
    table = read_table(path, {"id": "store,item"})
    assert [name for name, *_ in table.series] == ["1/1", "1/2", "2/1", "2/2"]
    assert table.names == ("load",)


YEARS = [str(year) for year in range(1995, 2001)]
SHORT = [f"{month:%b}" for month in MONTHS[:12]]
GRID = LOAD.reshape(6, 12)
FRENCH = ("janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.")
FRENCH += ("nov.", "déc.")
CALENDARS = {
    "names": pd.DataFrame(GRID, YEARS, SHORT).to_csv(index_label="Year"),
    "a mean of the year": pd.DataFrame(GRID, YEARS, SHORT)
    .assign(Annual=GRID.mean(axis=1))
    .to_csv(index_label="Year"),
    "numbers": pd.DataFrame(GRID, YEARS, range(1, 13)).to_csv(index_label="Year"),
    "French": pd.DataFrame(
        GRID,
        YEARS,
        list(FRENCH),
    ).to_csv(index_label="Année"),
    "years across": pd.DataFrame(GRID.T, SHORT, YEARS).to_csv(index_label="Month"),
}


@pytest.mark.parametrize("name", CALENDARS)
def test_a_calendar_is_one_series_of_months(name: str, tmp_path: Path):
    table = read_table(write(tmp_path, CALENDARS[name]))
    assert (table.step, len(table.series), table.values.shape) == ("MS", 1, (COUNT, 1))
    np.testing.assert_array_equal(table.times.astype("M8[s]"), MONTHS.to_numpy("M8[s]"))
    np.testing.assert_allclose(table.values[:, 0], LOAD)


@pytest.mark.parametrize(
    ("dates", "name", "step"),
    [
        ([1900 + k for k in range(COUNT)], "country", "YS-JAN"),
        ([f"{1995 + k / 12:.4f}" for k in range(COUNT)], "time", "MS"),
        ([f"{1995 + (k + 0.5) / 12:.3f}" for k in range(COUNT)], "year", "MS"),
        ([f"1995,1,{k}" for k in range(1, 32)], "year,month,date_of_month", "D"),
    ],
)
def test_years_parts_of_years_and_of_days_are_times(
    dates: list[Any], name: str, step: str, tmp_path: Path
):
    table = read_table(write(tmp_path, rows(dates, name=name)))
    assert (table.names, table.step, len(table.series)) == (("load",), step, 1)


def test_months_of_the_first_years_are_those_from_1901_on(tmp_path: Path):
    table = read_table(write(tmp_path, rows(f"{k // 12 + 1}-{k % 12 + 1:02d}" for k in range(36))))
    assert (table.names, table.step, str(table.times[0])[:7]) == (("load",), "MS", "1901-01")


def test_rows_without_a_time_are_left_out_and_the_others_keep_their_places(tmp_path: Path):
    table = read_table(write(tmp_path, CSV.replace("2024-01-02 05:00:00", "")), grid=False)
    assert any("Rows without a time in 'date' were left out: 1" in note for note in table.notes)
    assert table.order.tolist() == [*range(29), *range(30, COUNT)]


def test_years_of_the_world_bank_and_a_header_over_two_lines(tmp_path: Path):
    text = "Country Name,Country Code," + ",".join(f"{k} [YR{k}]" for k in range(1990, 2010))
    text += "\n" + "".join(f"{c},{c}X,{','.join(map(str, LOAD[:20]))}\n" for c in "AB")
    table = read_table(write(tmp_path, text))
    assert (table.step, [name for name, *_ in table.series]) == ("YS-JAN", ["A/AX", "B/BX"])
    text = "date,plant,plant\n,load,heat\n" + "".join(f"{line},1\n" for line in LINES[1:])
    assert read_table(write(tmp_path, text)).names == ("plant load", "plant heat")


def test_series_with_numbered_names_need_no_option(tmp_path: Path):
    wide = pd.DataFrame(np.tile(LOAD[:20], (4, 1)), columns=[f"V{k}" for k in range(2, 22)])
    wide.insert(0, "V1", [f"H{k}" for k in range(1, 5)])
    assert len(read_table(write(tmp_path, wide.to_csv(index=False))).series) == 4


def test_parts_of_dates_that_give_no_time_are_named(tmp_path: Path):
    table = read_table(write(tmp_path, rows(HOURS.strftime("%m,%d"), name="month,day")))
    assert any("named like a part of a date" in note for note in table.notes)
