"""Forecast error with and without covariates on ETTh1 and on the taxi rides of New York.

One channel each, PatchTST small, strategy raw, three seeds; the epoch is chosen on validation
windows and every test window counts. The known-future covariate of ETTh1 is its column HUFL, a
load, taken as if it had been planned; that of the taxi rides is the height of the sun, which an
almanac knows. The taxi file is `nyc_taxi.csv` of the Numenta Anomaly Benchmark.

    python -m benchmarks.covariates nyc_taxi.csv [results/covariates/errors.json]
"""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import make_parser
from sacm.data import ForecastingData, forecasting_data, load
from sacm.tasks import make_settings
from sacm.training import Hardware, train

SEEDS = (1, 2, 3)
LATITUDE = np.radians(40.7)  # New York
CALENDAR = ("hour", "weekday")
SETTINGS: dict[str, Any] = {
    "backbone": "PatchTST",
    "size": "small",
    "strategy": "raw",
    "input_len": 96,
    "horizon": 48,
    "epochs": 15,
    "patience": 4,
    "learning_rate": 1e-3,
    "stride": 4,
}


def keep_channel(data: ForecastingData, name: str, future: tuple[str, ...] = ()) -> ForecastingData:
    """One channel of a data set, with others as known-future covariates."""
    columns = [data.columns.index(one) for one in future]
    return replace(
        data,
        values=data.values[:, [data.columns.index(name)]],
        columns=(name,),
        covariates=data.values[:, columns] if future else None,
        future=future,
    )


def sun_height(stamps: np.ndarray) -> np.ndarray:
    """Sine of the sun's height over New York at local times, 0 at night, `[T]`."""
    days = stamps.astype("datetime64[D]")
    of_year = (days - days.astype("datetime64[Y]")).astype(np.int64)
    hours = (stamps - days).astype("timedelta64[s]").astype(np.int64) / 3600
    tilt = -np.radians(23.44) * np.cos(2 * np.pi * (of_year + 10) / 365)
    turn = np.pi * (hours - 12.5) / 12
    height = np.sin(LATITUDE) * np.sin(tilt) + np.cos(LATITUDE) * np.cos(tilt) * np.cos(turn)
    return np.maximum(height, 0)


def read_taxi(path: str, future: tuple[str, ...] = ()) -> ForecastingData:
    """Rides in half-hours, with the height of the sun where it is asked for."""
    import pandas as pd

    frame = pd.read_csv(path, parse_dates=["timestamp"])
    if future:
        frame["sun"] = sun_height(frame["timestamp"].to_numpy())
    return forecasting_data(frame, name="nyc_taxi", future=future)


def variants(place: str) -> dict[str, dict[str, Any]]:
    """What each row of the table is given."""
    return {
        "none": {},
        "calendar": {"calendar": CALENDAR},
        "calendar and holidays": {"calendar": CALENDAR, "holidays": place},
        "calendar, holidays and known future": {"calendar": CALENDAR, "holidays": place},
    }


def measure(data: ForecastingData, given: dict[str, Any], folder: Path) -> list[dict[str, float]]:
    """MAE and MSE on every test window, z-scored, one entry a seed."""
    found = []
    for seed in SEEDS:
        settings = make_settings(task="forecasting", data=data.name, seed=seed, **SETTINGS, **given)
        run = train(settings, folder=folder, hardware=Hardware(show_progress=False), data=data)
        errors = {name: run.row[name] for name in ("mae", "mse")}
        found.append({"seed": seed, **{k: round(float(v or 0), 5) for k, v in errors.items()}})
    return found


def main() -> None:
    """Measure and print; write the results if a file is named."""
    parser = make_parser(__doc__)
    parser.add_argument("taxi", help="NAB's nyc_taxi.csv")
    parser.add_argument("out", nargs="?", type=Path, help="JSON file to write")
    options = parser.parse_args()
    taxi = options.taxi
    etth1 = load("ETTh1")
    assert isinstance(etth1, ForecastingData)
    sources = {
        "ETTh1": ("CN", keep_channel(etth1, "OT"), keep_channel(etth1, "OT", ("HUFL",))),
        "nyc_taxi": ("US-NY", read_taxi(taxi), read_taxi(taxi, ("sun",))),
    }
    results: dict[str, Any] = {"settings": SETTINGS, "data": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, (place, plain, known) in sources.items():
            rows = results["data"][name] = {}
            for label, given in variants(place).items():
                data = known if "future" in label else plain
                rows[label] = measure(data, given, Path(folder))
                mean = {k: statistics.fmean(r[k] for r in rows[label]) for k in ("mae", "mse")}
                print(
                    f"{name:9} {label:36} mae {mean['mae']:.4f} mse {mean['mse']:.4f}", flush=True
                )
                if options.out is not None:
                    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
