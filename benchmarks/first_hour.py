"""The default forecast beside its rivals: `python -m benchmarks.first_hour FOLDER [--time 60]`.

Every file of the folder that can be read without options is trained by the default of `sacm train
forecasting`, and forecast from rolling origins in its test rows. Beside it: seasonal naive, and
exponential smoothing and Theta of statsmodels, which are fitted anew at every origin on all rows
before it (the last 1,000). The error is MASE with the season of the data. Time limits count CPU
seconds of this process, so that other processes do not change the result. Writes a row a file and
seed into results/users/first_hour.csv; rows that are there are not made again, and further seeds
only where a network takes part: the rest does not depend on them.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import make_parser
from sacm.data import forecasting_data
from sacm.data.datasets import ForecastingData, Splits
from sacm.data.scaling import fill_gaps
from sacm.errors import SACMError
from sacm.inference import Predictor
from sacm.inference.forecast import forecast_data
from sacm.tasks import get_task, let_compete, make_settings
from sacm.tasks.lengths import find_season
from sacm.training import Hardware, train

OUT = Path(__file__).parents[1] / "results" / "users" / "first_hour.csv"
ORIGINS, TRACKS, HISTORY = 6, 4, 1000  # origins a file, channels or series of it, rows of rivals
RIVALS = ("seasonal_naive", "exponential_smoothing", "theta")
FIELDS = (
    "file", "rows", "channels", "series", "season", "horizon", "origins", "seed", "time_limit",
    "cpu_seconds", "strategy", "networks", "sacm", "seasonal_naive", "exponential_smoothing",
    "theta", "made_of",
)  # fmt: skip


def smooth(past: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Exponential smoothing: of all forms the one with the least corrected AIC."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    past = past[-max(HISTORY, 4 * season) :]
    seasons: list[str | None] = [None]
    if season > 1 and len(past) >= 2 * season + 5:
        seasons = ["add", "mul"] if (past > 0).all() else ["add"]
    best, forecast = np.inf, np.repeat(past[-1], horizon)
    for form in seasons:
        for trend, damped in ((None, False), ("add", False), ("add", True)):
            try:
                fitted = ExponentialSmoothing(
                    past,
                    trend=trend,
                    damped_trend=damped,
                    seasonal=form,
                    seasonal_periods=season if form else None,
                    initialization_method="heuristic" if len(past) >= 10 else "estimated",
                ).fit()
                ahead = np.asarray(fitted.forecast(horizon))
            except (ValueError, np.linalg.LinAlgError, FloatingPointError):
                continue
            if np.isfinite(ahead).all() and fitted.aicc < best:
                best, forecast = fitted.aicc, ahead
    return forecast


def theta(past: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Theta, around a season where the rows hold it twice."""
    from statsmodels.tsa.forecasting.theta import ThetaModel

    past = past[-max(HISTORY, 4 * season) :]
    seasonal = season > 1 and len(past) >= 2 * season
    method = "auto" if (past > 0).all() else "additive"
    try:
        model = ThetaModel(
            past, period=season if seasonal else 1, deseasonalize=seasonal, method=method
        )
        ahead = np.asarray(model.fit().forecast(horizon))
    except (ValueError, np.linalg.LinAlgError):
        return np.repeat(past[-1], horizon)
    return ahead if np.isfinite(ahead).all() else np.repeat(past[-1], horizon)


def series_of(data: ForecastingData) -> Iterator[tuple[str, np.ndarray, list[int]]]:
    """Up to four channels, or series of one channel: name, rows in order of time, channels."""
    rows = data.last_rows(len(data.values))
    names = list(rows)
    places = np.unique(np.linspace(0, len(names) - 1, min(len(names), TRACKS)).astype(int))
    each = max(1, TRACKS // len(places))
    for place in places:
        yield names[place], rows[names[place]], list(range(min(each, data.channels)))


def measure(
    path: Path, seed: int, limit: str, folder: Path, rivals: Mapping[str, str] | None
) -> dict[str, Any]:
    """Train on one file and measure all forecasts; those of rivals only if they are not known."""
    data = forecasting_data(path)
    asked = {"task": "forecasting", "data": str(path), "seed": seed, "time_limit": limit}
    settings = make_settings(**let_compete(asked))
    task = get_task("forecasting")
    resolved = task.resolve(settings, data)
    data = task.divide(resolved, data)
    started = time.process_time()
    run = train(settings, folder=folder, hardware=Hardware(show_progress=False), data=data)
    seconds = time.process_time() - started
    predictor = Predictor.load(run)
    season, horizon = find_season(data), resolved.horizon
    errors: dict[str, list[float]] = {}
    count = 0
    for name, rows, channels in series_of(data):
        test = sum(row >= data.splits.test.start for row in rows)
        train_rows = sum(row < data.splits.train.stop for row in rows)
        if test < horizon or len(rows) - test < resolved.input_len:
            continue
        values = data.values[rows].astype(np.float64)
        origins = np.unique(np.linspace(len(rows) - test, len(rows) - horizon, ORIGINS).astype(int))
        count = max(count, len(origins))
        ours = {int(o): forecast_from(predictor, data, rows[:o], name) for o in origins}
        for channel in channels:
            steps = np.abs(
                values[season:train_rows, channel] - values[: train_rows - season, channel]
            )
            scale = np.nanmean(steps) if np.isfinite(steps).any() else 0.0
            if not scale > 0:
                continue
            found: dict[str, list[float]] = {}
            for origin, own in ours.items():
                past = fill_gaps(values[:origin, channel, None])[:, 0]  # nothing after the origin
                truth = values[origin : origin + horizon, channel]
                if np.isnan(truth).all():
                    continue
                forecasts = {"sacm": own[:, channel]}
                if rivals is None:
                    forecasts |= {
                        "seasonal_naive": past[-season:][np.arange(horizon) % season],
                        "exponential_smoothing": smooth(past, season, horizon),
                        "theta": theta(past, season, horizon),
                    }
                for key, ahead in forecasts.items():
                    found.setdefault(key, []).append(
                        float(np.nanmean(np.abs(ahead - truth)) / scale)
                    )
            for key, values_found in found.items():
                errors.setdefault(key, []).append(float(np.mean(values_found)))
    made_of = "; ".join(f"{m['weight']:.2f} {m['name']}" for m in run.settings.overrides["members"])
    race = run.metrics["race"]
    return {
        "file": path.name,
        "rows": len(data.values),
        "channels": data.channels,
        "series": len(data.last_rows(1)),
        "season": season,
        "horizon": horizon,
        "origins": count,
        "seed": seed,
        "time_limit": limit,
        "cpu_seconds": round(seconds, 1),
        "strategy": race["winner"],
        "networks": sum(row["steps"] > 0 for row in race["table"]),
        **({} if rivals is None else {key: rivals[key] for key in RIVALS}),
        **{key: round(float(np.mean(found)), 4) for key, found in errors.items()},
        "made_of": made_of,
    }


def forecast_from(
    predictor: Predictor, data: ForecastingData, rows: np.ndarray, name: str
) -> np.ndarray:
    """The forecast `[H, C]` after the last of some rows of a series."""
    kept = rows[-predictor.shape.input_len :]
    arrays = {
        key: getattr(data, key)[kept]
        for key in ("values", "timestamps", "observed", "covariates")
        if getattr(data, key) is not None
    }
    segment = data.segments[0]._replace(name=name, start=0, stop=len(kept))
    splits = Splits(range(len(kept)), range(0), range(0))
    part = replace(data, segments=(segment,), splits=splits, targets=None, broken=None, **arrays)
    if not predictor.scaler.series:
        return forecast_data(predictor, part, max_repaired=1.0).values[0]
    part = replace(part, name=name)
    return forecast_data(predictor, part, max_repaired=1.0).values[0]


def summarize(rows: list[dict[str, str]]) -> str:
    """Geometric means over files (of the mean over seeds), and the worst files."""
    names = ("sacm", *RIVALS)
    files = dict.fromkeys(row["file"] for row in rows if row.get("sacm"))
    table = np.array(
        [
            [np.mean([float(row[name]) for row in rows if row["file"] == file]) for name in names]
            for file in files
        ]
    )
    means = np.exp(np.log(np.maximum(table, 1e-9)).mean(axis=0))
    against = table[:, 0] / table[:, 1:].min(axis=1)
    text = ", ".join(f"{name} {mean:.3f}" for name, mean in zip(names, means, strict=True))
    order = sorted(zip(against, files, strict=True), reverse=True)
    worst = ", ".join(f"{file} {share:.2f}" for share, file in order if share > 1.1)
    return (
        f"{len(table)} files, geometric mean of MASE: {text}; ours over the best single rival "
        f"{means[0] / means[1:].min():.3f}; above 1.10 of the best rival of a file: "
        f"{worst or 'none'}"
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time", default="60", help="Time limit of each training, CPU seconds.")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--runs", type=Path, default=Path("runs/first_hour"))
    parser.add_argument(
        "--again", action="store_true", help="Make our rows again; rivals keep their numbers."
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    time.monotonic = time.process_time  # the clock of time limits
    rows: list[dict[str, str]] = []
    if options.out.exists():
        with options.out.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    known = {row["file"]: row for row in reversed(rows)}  # of rivals
    if options.again:
        rows = []
    done = {(row["file"], row["seed"], row["time_limit"]) for row in rows}
    files = sorted(
        (p for p in options.folder.iterdir() if p.is_file()), key=lambda p: p.stat().st_size
    )
    for seed in options.seeds.split(","):
        for path in files:
            same = [row for row in rows if row["file"] == path.name]
            if (path.name, seed, options.time) in done or (same and same[0]["networks"] == "0"):
                continue
            try:
                found = measure(path, int(seed), options.time, options.runs, known.get(path.name))
            except SACMError as error:
                print(f"{path.name}: {error}", flush=True)
                continue
            rows.append({key: str(found.get(key, "")) for key in FIELDS})
            print({key: found.get(key) for key in FIELDS}, flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(rows)
    print(summarize(rows))


if __name__ == "__main__":
    main()
