"""From a CSV file to a forecast with intervals, in the units of the data.

The script writes a CSV file with two hourly columns and a few holes, trains a forecaster on its
first rows, forecasts the next day and measures the errors on rows that it has not seen.

Run: python examples/csv_to_forecast.py [--quick] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sacm

HORIZON = 24


def write_csv(path: Path, rows: int) -> None:
    """Hourly load and temperature with a daily rhythm, noise, and five missing cells."""
    random = np.random.default_rng(0)
    hours = np.arange(rows)
    daily = 2 * np.pi * hours / 24
    frame = pd.DataFrame(
        {
            "date": pd.date_range("2024-03-01", periods=rows, freq="h"),
            "load": 50 + 10 * np.sin(daily) + random.normal(scale=2.0, size=rows),
            "temperature": 12 + 4 * np.cos(daily) + random.normal(scale=0.5, size=rows),
        }
    )
    frame.loc[random.choice(rows, 5, replace=False), "load"] = np.nan
    frame.to_csv(path, index=False)


def draw(known: pd.DataFrame, forecast: pd.DataFrame, interval: Any, path: Path) -> None:
    """The last two days, the forecast, and its 80 % interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(known["date"], known["load"], label="load")
    axes.plot(forecast["date"], forecast["load"], label="forecast")
    bounds = [bound["load"] for bound in interval]
    axes.fill_between(forecast["date"], *bounds, alpha=0.2, label="80 % interval")
    axes.tick_params(axis="x", rotation=30)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="From a CSV file to a forecast.")
    parser.add_argument("--quick", action="store_true", help="fewer rows, one epoch")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of CSV and figure")
    options = parser.parse_args(arguments)

    rows = 800 if options.quick else 1500
    write_csv(options.out / "load.csv", rows)
    frame = pd.read_csv(options.out / "load.csv", parse_dates=["date"])
    train, test = frame[: rows - 200], frame[rows - 200 :]

    forecaster = sacm.Forecaster(
        "iTransformer",
        input_len=72,
        horizon=HORIZON,
        size="small",
        epochs=1 if options.quick else 30,
        learning_rate=1e-3,
    )
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", sacm.SACMWarning)
        forecaster.fit(train)
    for note in notes:  # what was repaired is said, as warnings
        print("note:", note.message)

    forecast = forecaster.predict()
    interval = forecaster.predict_interval(coverage=0.8)
    print(forecast.head(4).to_string(index=False, float_format="%.2f"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sacm.SACMWarning)  # the holes in the test rows
        errors = forecaster.evaluate(test)
        forecaster.save(options.out / "forecaster")
        again = sacm.Forecaster.load(options.out / "forecaster")
        assert again.predict(train).equals(forecast)  # a saved forecaster holds no rows
    print(f"mean absolute error on unseen rows: {errors['mae_raw']:.2f}")
    draw(train[-48:], forecast, interval, options.out / "csv_to_forecast.png")


if __name__ == "__main__":
    main()
