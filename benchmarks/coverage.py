"""How well conformal intervals keep their promise: `python -m benchmarks.coverage [SET …]`.

A set is a name or a CSV file; without any, all forecasting sets at hand. A small network a set. The
first half of the test windows calibrates, the second half tests; intervals are wider after windows
that move further; "alike" are the same without that. Adds to results/users/coverage.json.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import make_parser
from sacm.data import resolve
from sacm.data.batches import ForecastWindows
from sacm.data.datasets import Splits
from sacm.errors import ArgumentError, SACMError
from sacm.files import read_json, write_json
from sacm.inference import Predictor
from sacm.inference.forecast import prepare_evaluation
from sacm.tasks import make_settings
from sacm.tasks.calibration import ErrorQuantiles, Residuals, forecast_residuals
from sacm.training import Hardware, train

SETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Exchange", "ILI", "Weather", "ECG")
NOMINAL = (0.5, 0.8, 0.95)
CRPS_LEVELS = tuple(round(0.05 * place, 2) for place in range(1, 20))
FEWEST = 10  # windows to calibrate intervals with, and to test them
TEST_ROWS, TRAIN_WINDOWS = 4000, 1500
OUT = Path(__file__).parents[1] / "results" / "users" / "coverage.json"


def shorten(data: Any) -> Any:
    """The same data with at most so many test rows, so that all sets take about as long."""
    test = data.splits.test
    splits = Splits(data.splits.train, data.splits.val, test[:TEST_ROWS])
    return replace(data, splits=splits)


def measure(source: str, folder: Path, epochs: int = 3) -> dict[str, Any]:
    """Train a small network on a data set and judge its intervals on the test rows."""
    data: Any = shorten(resolve(source, task="forecasting"))
    name = data.name
    settings = make_settings(
        task="forecasting",
        data=name,
        backbone="iTransformer",
        size="small",
        input_len=36 if name == "ILI" else 96,
        horizon=24,
        epochs=epochs,
        stride=max(1, len(data.splits.train) // TRAIN_WINDOWS),
    )
    run = train(settings, folder=folder, data=data, hardware=Hardware(show_progress=False))
    predictor = Predictor.load(run)
    _, windows = prepare_evaluation(predictor, data)
    found = measure_uncertainty(predictor, windows)
    found["intervals"] = [{"nominal": e["nominal"], "fixed": e} for e in found["intervals"]]
    add_alike(found, predictor, windows)
    for each in found["intervals"]:
        for kind in ("fixed", "alike"):
            each[kind] = {name: round(each[kind][name], 4) for name in ("coverage", "width")}
    return {**found, "baselines": run.metrics["baselines"]}


def measure_uncertainty(predictor: Predictor, windows: ForecastWindows) -> dict[str, Any]:
    """How intervals would have done: the first half of the windows calibrates, the second tests.

    The windows are in order of time and chose nothing. Those of the second half that touch a
    target of the first are left out. Widths and the CRPS are in z-scored units.
    """
    before, after = halves(forecast_residuals(predictor.trained, windows))
    errors = ErrorQuantiles.fit(before.values, moves=before.moves, shares=before.shares)

    def bound(level: float) -> np.ndarray:
        offset = errors.offset(level, moves=after.moves, shares=after.shares)
        return np.broadcast_to(offset, after.values.shape)

    intervals = []
    for coverage in NOMINAL:
        low, high = (bound((1 + sign * coverage) / 2) for sign in (-1, 1))
        intervals.append(measure_intervals(after.values, low, high, coverage))
    quantiles = np.stack([bound(level) for level in CRPS_LEVELS])
    return {
        "calibration_windows": len(before.values),
        "windows": len(after.values),
        "crps": crps(after.values, quantiles, CRPS_LEVELS),
        "intervals": intervals,
    }


def halves(residuals: Residuals) -> tuple[Residuals, Residuals]:
    """The first half, and later windows that no target of the first half lies in."""
    starts, half = residuals.starts, len(residuals.starts) // 2
    later = np.arange(half, len(starts))
    if half:
        later = later[starts[later] >= starts[half - 1] + residuals.values.shape[1]]
    if min(half, len(later)) < FEWEST:
        raise ArgumentError(f"{len(starts)} windows are too few to judge intervals by.")
    before, after = (
        Residuals(*(None if each is None else each[part] for each in residuals))
        for part in (np.arange(half), later)
    )
    return before, after


def measure_intervals(
    truth: np.ndarray, lower: np.ndarray, upper: np.ndarray, nominal: float
) -> dict[str, Any]:
    """Share of targets `[N, H, C]` in their intervals, and mean width; NaN targets do not count."""
    seen = np.isfinite(truth)
    inside = seen & (truth >= lower) & (truth <= upper)
    coverage, width = float(inside.sum() / seen.sum()), float((upper - lower)[seen].mean())
    return {"nominal": float(nominal), "coverage": coverage, "width": width}


def crps(truth: np.ndarray, quantiles: np.ndarray, levels: tuple[float, ...]) -> float:
    """Continuous ranked probability score: twice the mean pinball loss; lower is better.

    `quantiles` `[Q, *truth.shape]` have evenly spaced levels; NaN targets do not count.
    """
    losses = []
    for quantile, level in zip(quantiles, levels, strict=True):
        error = truth - quantile
        losses.append(np.nanmean(np.maximum(level * error, (level - 1) * error)))
    return float(2 * np.mean(losses))


def add_alike(found: dict[str, Any], predictor: Predictor, windows: ForecastWindows) -> None:
    """Add what intervals that are alike after all windows would have enclosed."""
    before, after = halves(forecast_residuals(predictor.trained, windows))
    errors = ErrorQuantiles.fit(before.values, shares=before.shares)
    residuals = after.values
    bounds = {
        level: np.broadcast_to(errors.offset(level, shares=after.shares), residuals.shape)
        for level in (*CRPS_LEVELS, *((1 + s * c) / 2 for c in NOMINAL for s in (-1, 1)))
    }
    for each in found["intervals"]:
        low, high = (bounds[(1 + sign * each["nominal"]) / 2] for sign in (-1, 1))
        each["alike"] = measure_intervals(residuals, low, high, each["nominal"])
    levels = np.stack([bounds[level] for level in CRPS_LEVELS])
    found["crps_alike"] = crps(residuals, levels, CRPS_LEVELS)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("sources", nargs="*", default=SETS, help="names of data sets, or files")
    sources = parser.parse_args().sources
    print("set        nominal  fixed  alike   widths        CRPS, alike")
    results = read_json(OUT) if OUT.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            name = Path(source).stem
            try:
                results[name] = measure(source, Path(folder))
            except SACMError as error:
                print(f"{name}: {error}")
                continue
            for each in results[name]["intervals"]:
                kinds = [each[kind] for kind in ("fixed", "alike")]
                shares = "  ".join(f"{own['coverage']:6.3f}" for own in kinds)
                widths = " ".join(f"{own['width']:5.2f}" for own in kinds)
                measures = ("crps", "crps_alike")
                scores = " ".join(f"{results[name][key]:.4f}" for key in measures)
                print(
                    f"{name:10.10} {each['nominal']:7} {shares}   {widths}   {scores}", flush=True
                )
            write_json(OUT, results)


if __name__ == "__main__":
    main()
