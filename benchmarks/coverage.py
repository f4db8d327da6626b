"""How well conformal intervals keep their promise: `python -m benchmarks.coverage`.

A small network a data set. The first half of the test windows calibrates, the second half tests;
fixed intervals stay as calibrated, adaptive ones learn from every row as it becomes known. Writes
results/users/coverage.json.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from sacm.data import load
from sacm.data.splits import Splits
from sacm.errors import SACMError
from sacm.files import write_json
from sacm.inference import Predictor
from sacm.inference.uncertainty import calibration_windows, measure_uncertainty
from sacm.tasks import make_settings
from sacm.training import Hardware, train

SETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Exchange", "ILI", "Weather", "ECG")
NOMINAL = (0.5, 0.8, 0.95)
TEST_ROWS, TRAIN_WINDOWS = 4000, 1500
OUT = Path(__file__).parents[1] / "results" / "users" / "coverage.json"


def shorten(data: Any) -> Any:
    """The same data with at most so many test rows, so that all sets take about as long."""
    test = data.splits.test
    splits = Splits(data.splits.train, data.splits.val, test[:TEST_ROWS])
    return replace(data, splits=splits)


def measure(name: str, folder: Path, epochs: int = 3) -> dict[str, Any]:
    """Train a small network on a data set and judge its intervals on the test rows."""
    data: Any = shorten(load(name))
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
    predictor = Predictor.open(run)
    found = measure_uncertainty(predictor, calibration_windows(predictor, data), NOMINAL)
    for each in found["intervals"]:
        for kind in ("fixed", "adaptive"):
            each[kind] = {name: round(each[kind][name], 4) for name in ("coverage", "width")}
    return {**found, "yardsticks": run.metrics["yardsticks"]}


def main() -> None:
    print("set        nominal  fixed  adaptive   widths        CRPS")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in SETS:
            try:
                results[name] = measure(name, Path(folder))
            except SACMError as error:
                print(f"{name}: {error}")
                continue
            for each in results[name]["intervals"]:
                fixed, adaptive = each["fixed"], each["adaptive"]
                print(
                    f"{name:10} {each['nominal']:7} {fixed['coverage']:6.3f} "
                    f"{adaptive['coverage']:9.3f}   {fixed['width']:5.2f} {adaptive['width']:5.2f}"
                    f"   {results[name]['crps']:.4f}",
                    flush=True,
                )
            write_json(OUT, results)


if __name__ == "__main__":
    main()
