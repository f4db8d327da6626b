"""The nine forecasting data sets; all but ECG are tables with a row for each time step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sacm.data.cases import Arrays
from sacm.data.datasets import ForecastingData, Splits, split_by_ratio
from sacm.data.load import Ratios
from sacm.data.scaling import fill_gaps
from sacm.errors import DataError
from sacm.types import TaskName
from sacm_lab.datasets import mitbih
from sacm_lab.datasets.public import (
    FolderLayout,
    PublicDataset,
    RemoteFile,
    difference_note,
    first_file,
    number_matrix,
)

ETT_HOME = "https://github.com/zhouhaoyi/ETDataset"
ETT_FILES = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/"
LIBRARY = "https://huggingface.co/datasets/thuml/Time-Series-Library"
LIBRARY_FILES = LIBRARY + "/resolve/main/"
LONG_HORIZONS = (96, 192, 336, 720)
NONE_STATED = "none stated"
# Older text files of the same series; that of Exchange Rate has its last two columns swapped.
TEXT_ENDINGS = (".txt", ".txt.gz")

# The header of the published file has characters broken by a wrong encoding in three of these.
WEATHER_COLUMNS = (
    *("p (mbar)", "T (degC)", "Tpot (K)", "Tdew (degC)", "rh (%)", "VPmax (mbar)"),
    *("VPact (mbar)", "VPdef (mbar)", "sh (g/kg)", "H2OC (mmol/mol)", "rho (g/m**3)", "wv (m/s)"),
    *("max. wv (m/s)", "wd (deg)", "rain (mm)", "raining (s)", "SWDR (W/m2)", "PAR (umol/m2/s)"),
    *("max. PAR (umol/m2/s)", "Tlog (degC)", "OT"),
)


@dataclass(frozen=True, kw_only=True)
class ForecastingSet(PublicDataset):
    """A long series: `rows` in the file, the first `rows_used` of them in the benchmark."""

    rows: int
    ratios: tuple[float, float, float]
    frequency: str | None
    sampling: str
    rows_used: int = 0
    split_rows: tuple[int, int, int] | None = None
    columns: tuple[str, ...] = ()

    task: TaskName = "forecasting"

    @property
    def benchmark_rows(self) -> int:
        """Rows that the benchmark uses."""
        return self.rows_used or self.rows

    def splits(self, rows: int) -> Splits:
        """The benchmark's split of so many rows: its own sizes where it states them."""
        if self.split_rows is not None and sum(self.split_rows) == rows:
            train, val, _ = self.split_rows
            return Splits(range(train), range(train, train + val), range(train + val, rows))
        return split_by_ratio(rows, self.ratios)

    def sizes(self) -> dict[str, Any]:
        """Rows, channels, split and horizons."""
        return {
            "rows": self.benchmark_rows,
            "channels": self.channels,
            "sampling": self.sampling,
            "split_rows": [len(rows) for rows in self.splits(self.benchmark_rows)],
            "input_length": self.input_len,
            "horizons": list(self.horizons),
        }

    def shape(self) -> str:
        """Rows x channels."""
        return f"{self.benchmark_rows:,} x {self.channels}"

    def build_as_published(self, arrays: Arrays) -> ForecastingData:
        """The benchmark's rows and split."""
        return self.build(arrays, ratios=None)

    def build(self, arrays: Arrays, *, ratios: Ratios | None) -> ForecastingData:
        """The benchmark's rows and split, or all rows in the shares of `ratios`."""
        rows = self.benchmark_rows if ratios is None else None
        rows_in_file, channels_in_file = arrays["values"].shape
        values = np.ascontiguousarray(arrays["values"][:rows], dtype=np.float32)
        columns = tuple(str(column) for column in arrays["columns"])
        if len(columns) != values.shape[1]:
            raise DataError(f"{self.name}: {len(columns)} names for {values.shape[1]} columns.")
        splits = self.splits(len(values)) if ratios is None else split_by_ratio(len(values), ratios)
        missing = np.isnan(values)
        note = (
            f"{int(missing.sum()):,} missing values were interpolated." if missing.any() else None
        )
        timestamps = arrays.get("timestamps")
        notes = [
            *self.facts,
            difference_note("rows", rows_in_file, self.rows),
            difference_note("channels", channels_in_file, self.channels),
            note,
            "This copy has no timestamps." if timestamps is None and self.frequency else None,
        ]
        return ForecastingData(
            name=self.name,
            values=fill_gaps(values, splits),
            columns=columns,
            splits=splits,
            timestamps=None if timestamps is None else timestamps[:rows],
            frequency=self.frequency,
            notes=tuple(note for note in notes if note),
        )


def find_table(folder: Path, dataset: ForecastingSet) -> Path | None:
    """The benchmark's CSV, or the text file that it was made from."""
    stem = dataset.file_stem
    low = stem.lower()
    names = [dataset.files[0].path, f"{stem}.csv", f"{low}.csv", f"{low}/{low}.csv"]
    names += [f"{stem}.csv.gz"]
    names += [f"{part}{low}{ending}" for ending in TEXT_ENDINGS for part in ("", f"{low}/")]
    return first_file(folder, dataset, names)


def read_series_table(path: Path, dataset: ForecastingSet) -> Arrays:
    """Values, column names and times of one of the tables."""
    from sacm.data.read import in_seconds, load_source
    from sacm.data.times import read_column

    table: Any = load_source(path).content
    arrays: Arrays = {}
    dated = read_column(table.iloc[:, 0], named=True)
    if dated:
        arrays["timestamps"] = in_seconds(dated[0].stamps.to_numpy())
        table = table.iloc[:, 1:]
    values = number_matrix(table, str(path))
    if dataset.name == "Exchange Rate" and path.name.endswith(TEXT_ENDINGS):
        values = np.ascontiguousarray(values[:, [*range(values.shape[1] - 2), -1, -2]])
    named = len(dataset.columns) == values.shape[1]
    arrays["values"] = values
    arrays["columns"] = np.array(dataset.columns if named else [str(c) for c in table.columns])
    return arrays


TABLE = (FolderLayout("table", find_table, read_series_table),)
RECORDS = (FolderLayout("WFDB records", mitbih.find_records, mitbih.read_records),)


def ett(name: str, sha256: str, *, minutes: int) -> ForecastingSet:
    """One of the four transformer series."""
    path = f"ETT-small/{name}.csv"
    hourly = minutes == 60
    used = 14_400 if hourly else 57_600
    rows = 17_420 if hourly else 69_680
    return ForecastingSet(
        name=name,
        layouts=TABLE,
        channels=7,
        licence="CC BY-ND 4.0",
        home=ETT_HOME,
        files=(RemoteFile(ETT_FILES + path, path, f"sha256:{sha256}"),),
        rows=rows,
        rows_used=used,
        ratios=(0.6, 0.2, 0.2),
        horizons=LONG_HORIZONS,
        frequency="h" if hourly else "15min",
        sampling="1 h" if hourly else "15 min",
        facts=(f"The benchmark uses the first {used:,} of {rows:,} rows.",),
    )


def library_file(path: str, sha256: str) -> tuple[RemoteFile, ...]:
    """A CSV of the Time-Series-Library collection."""
    return (RemoteFile(LIBRARY_FILES + path, path, f"sha256:{sha256}"),)


FORECASTING_SETS = (
    ett("ETTh1", "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066", minutes=60),
    ett("ETTh2", "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b", minutes=60),
    ett("ETTm1", "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e", minutes=15),
    ett("ETTm2", "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd", minutes=15),
    ForecastingSet(
        name="Weather",
        layouts=TABLE,
        channels=21,
        licence=f"{NONE_STATED} (weather station Jena, MPI for Biogeochemistry)",
        home="https://www.bgc-jena.mpg.de/wetter/",
        files=library_file(
            "weather/weather.csv",
            "34ee981d07313e51da2a50bb600072c8ae4a69cb4b0651f4cb93a069d7a2ba63",
        ),
        rows=52_696,
        ratios=(0.7, 0.1, 0.2),
        horizons=LONG_HORIZONS,
        frequency="10min",
        sampling="10 min",
        columns=WEATHER_COLUMNS,
        facts=(
            "Sensor faults are written as -9999: 81 cells in 80 rows of 'wv (m/s)', "
            "'max. PAR (umol/m2/s)' and 'OT'. The benchmark keeps them, and they dominate the "
            "scale of those channels.",
            "One timestamp is repeated (2020-05-12 06:00) and one stretch is missing (2020-05-29 "
            "09:30 to 11:10); the rows are used as they come.",
        ),
    ),
    ForecastingSet(
        name="Electricity",
        stem="electricity",
        layouts=TABLE,
        channels=321,
        licence="CC BY 4.0 (UCI ElectricityLoadDiagrams20112014)",
        home="https://archive.ics.uci.edu/dataset/321/electricityloaddiagrams20112014",
        files=library_file(
            "electricity/electricity.csv",
            "7e45845d54c5219bad0ae6bc1b5316cf8ff9cead5d33fa998a5a51c2e4a497ad",
        ),
        rows=26_304,
        ratios=(0.7, 0.1, 0.2),
        horizons=LONG_HORIZONS,
        frequency="h",
        sampling="1 h",
    ),
    ForecastingSet(
        name="Exchange Rate",
        stem="exchange_rate",
        layouts=TABLE,
        channels=8,
        licence=NONE_STATED,
        home="https://github.com/laiguokun/multivariate-time-series-data",
        files=library_file(
            "exchange_rate/exchange_rate.csv",
            "48b4d9d3d508f5104162e85b9a6042e3557fde11aa9f2944eba8c0d0efc89842",
        ),
        rows=7_588,
        ratios=(0.6, 0.2, 0.2),
        split_rows=(4_552, 1_518, 1_518),
        horizons=LONG_HORIZONS,
        frequency="D",
        sampling="1 day",
        facts=(
            "Split 6:2:2: the usual 7:1:2 leaves 758 validation rows, too few for 96 + 720.",
            "The dates are nominal consecutive days, not trading days.",
        ),
    ),
    ForecastingSet(
        name="ILI",
        stem="national_illness",
        layouts=TABLE,
        channels=7,
        licence=f"{NONE_STATED} (data of the US CDC)",
        home="https://gis.cdc.gov/grasp/fluview/fluportaldashboard.html",
        files=library_file(
            "illness/national_illness.csv",
            "93601f64d2566dc796ca4305adad8b8560c2db1a1ff04543c3bd813a7263570a",
        ),
        rows=966,
        ratios=(0.7, 0.1, 0.2),
        horizons=(24, 36, 48, 60),
        frequency="W-TUE",
        sampling="1 week",
        input_len=24,
        facts=(
            "At horizon 60 there are 593 training and 13 validation windows: report the spread "
            "over seeds.",
        ),
    ),
    ForecastingSet(
        name="ECG",
        layouts=RECORDS,
        channels=12,
        licence="ODC-BY 1.0",
        home="https://physionet.org/content/mitdb/1.0.0/",
        files=tuple(
            RemoteFile(f"https://physionet.org/files/mitdb/1.0.0/{name}", f"mitdb/{name}")
            for record in range(100, 106)
            for name in (f"{record}.hea", f"{record}.dat")
        ),
        rows=65_000,
        ratios=(0.7, 0.1, 0.2),
        horizons=(36, 72, 144, 288),
        frequency=None,
        sampling="36 Hz",
        facts=(
            "Both leads of MIT-BIH records 100 to 105 side by side (they were not recorded at the "
            "same time), 360 to 36 Hz with an anti-aliasing filter, cut to 65,000 rows.",
            "Undated: there are no calendar features.",
        ),
    ),
)
