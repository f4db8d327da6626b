"""The nine forecasting benchmarks."""

from __future__ import annotations

from sacm.data.benchmarks.catalogue.entry import ForecastingEntry, RemoteFile

ETT_HOME = "https://github.com/zhouhaoyi/ETDataset"
ETT_FILES = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/"
LIBRARY = "https://huggingface.co/datasets/thuml/Time-Series-Library"
LIBRARY_FILES = LIBRARY + "/resolve/main/"
LONG_HORIZONS = (96, 192, 336, 720)
NONE_STATED = "none stated"

# The header of the published file has characters broken by a wrong encoding in three of these.
WEATHER_COLUMNS = (
    *("p (mbar)", "T (degC)", "Tpot (K)", "Tdew (degC)", "rh (%)", "VPmax (mbar)"),
    *("VPact (mbar)", "VPdef (mbar)", "sh (g/kg)", "H2OC (mmol/mol)", "rho (g/m**3)", "wv (m/s)"),
    *("max. wv (m/s)", "wd (deg)", "rain (mm)", "raining (s)", "SWDR (W/m2)", "PAR (umol/m2/s)"),
    *("max. PAR (umol/m2/s)", "Tlog (degC)", "OT"),
)


def ett(name: str, sha256: str, *, minutes: int) -> ForecastingEntry:
    """One of the four transformer series."""
    path = f"ETT-small/{name}.csv"
    hourly = minutes == 60
    used = 14_400 if hourly else 57_600
    rows = 17_420 if hourly else 69_680
    return ForecastingEntry(
        name=name,
        source="table",
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


FORECASTING = (
    ett("ETTh1", "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066", minutes=60),
    ett("ETTh2", "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b", minutes=60),
    ett("ETTm1", "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e", minutes=15),
    ett("ETTm2", "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd", minutes=15),
    ForecastingEntry(
        name="Weather",
        source="table",
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
        fault_code=-9999.0,
        facts=(
            "Sensor faults are written as -9999: 81 cells in 80 rows of 'wv (m/s)', "
            "'max. PAR (umol/m2/s)' and 'OT'. The benchmark keeps them, and they dominate the "
            "scale of those channels; load with mask_faults=True to treat them as missing.",
            "One timestamp is repeated (2020-05-12 06:00) and one stretch is missing (2020-05-29 "
            "09:30 to 11:10); the rows are used as they come.",
        ),
    ),
    ForecastingEntry(
        name="Electricity",
        aliases=("ECL",),
        stem="electricity",
        source="table",
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
    ForecastingEntry(
        name="Exchange Rate",
        aliases=("Exchange",),
        stem="exchange_rate",
        source="table",
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
    ForecastingEntry(
        name="ILI",
        aliases=("Illness", "national_illness"),
        stem="national_illness",
        source="table",
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
    ForecastingEntry(
        name="ECG",
        aliases=("MIT-BIH",),
        source="mitbih",
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
