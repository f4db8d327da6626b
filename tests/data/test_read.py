"""Files as people have them: what a reader understands, and which option a refusal names."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

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


def test_year_and_name_of_month_are_one_time(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text(rows(MONTHS.strftime("%Y,%b"), name="Year,Month"))
    table = read_table(path)
    assert (table.step, table.names) == ("MS", ("load",))


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
    "a time twice": (TWICE, "duplicates='mean'", {"duplicates": "mean"}),
    "no grid": (UNEVEN, "resample=", {"resample": "h"}),
    "another code page": (
        CSV.replace("load", "温度").encode("shift_jis"),
        "encoding=",
        {"encoding": "shift_jis"},
    ),
    "thousands or fractions": (
        FRAME.assign(load=[f"{x * 1000:,.0f}" for x in LOAD]).to_csv(index=False),
        "decimal=",
        {"decimal": "."},
    ),
    "dates in two ways": (
        rows([f"01/02/{2000 + k}" for k in range(9)]),
        "date_order=",
        {"date_order": "day"},
    ),
    "words with numbers in them": (
        FRAME.assign(load=["<90" if k % 9 == 0 else f"{x}1" for k, x in enumerate(LOAD)]).to_csv(
            index=False
        ),
        "na='<90'",
        {"na": "<90"},
    ),
    "half of the rows missing": (
        "\n".join([*LINES[:21], *LINES[24::4]]),
        "frequency='h'",
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
    with pytest.raises(DataError, match="only some times name a zone"):
        read_table(write(tmp_path, rows(dates)))


def test_words_are_left_out_and_can_become_inputs(tmp_path: Path):
    frame = FRAME.assign(weather=np.where(LOAD > 20, "sun", "rain"), note=[f"n{k}" for k in HOURS])
    path = write(tmp_path, frame.to_csv(index=False))
    table = read_table(path)
    assert table.names == ("load",)
    assert any("weather" in note and "category=" in note for note in table.notes)
    coded = read_table(path, {"category": "weather"})
    assert coded.names == ("load", "weather=rain", "weather=sun")
    np.testing.assert_array_equal(coded.values[:, 2], (LOAD > 20).astype(float))


def test_a_clock_that_was_put_back_is_no_error(tmp_path: Path):
    local = pd.date_range("2024-10-26", periods=COUNT, freq="h", tz="Europe/Berlin")
    path = write(tmp_path, rows(local.strftime("%Y-%m-%d %H:%M")))
    table = read_table(path)
    assert len(table.values) == COUNT - 1
    assert any("clock was put back" in note for note in table.notes)
    assert len(read_table(path, {"zone": "Europe/Berlin"}).values) == COUNT


def test_constant_columns_stay_and_codes_are_proposed(tmp_path: Path):
    frame = FRAME.assign(stuck=5.0, broken=np.where(np.arange(COUNT) % 9, LOAD, -9999))
    path = write(tmp_path, frame.to_csv(index=False))
    table = read_table(path)
    assert table.names == ("load", "stuck", "broken")
    assert any("'broken' is -9999" in note and "na=-9999" in note for note in table.notes)
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
    assert any("resample=" in note for note in table.notes)
    assert table.inserted > 0


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
