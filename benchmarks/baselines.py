"""What needs no network, on every data set at hand: `python -m benchmarks.baselines`.

Writes results/users/baselines.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import make_parser
from sacm.data import load, names
from sacm.data.batches import WindowBatches
from sacm.data.load import find
from sacm.data.windows import forecasting_windows
from sacm.files import write_json
from sacm.metrics.anomaly import evaluate_scores
from sacm.metrics.classification import measure_classes
from sacm.metrics.forecasting import ForecastAccumulator, ForecastReport
from sacm.tasks.baselines import alarm_baselines, class_baselines, forecast_baselines

OUT = Path(__file__).parents[1] / "results" / "users" / "baselines.json"


def forecasts(data: Any) -> dict[str, Any]:
    """Naive forecasts over every test window of the paper's shortest horizon."""
    short = data.name == "ILI"
    windows = forecasting_windows(data, input_len=24 if short else 96, horizon=24 if short else 96)
    batches = WindowBatches(windows.test, 256)

    def perfect(accumulator: ForecastAccumulator) -> ForecastReport:
        for batch in batches:
            accumulator.update(batch.y, batch.y, observed=batch.observed, series=batch.series)
        return accumulator.compute()

    return forecast_baselines(data, windows.test.scaler, batches, perfect)[1]


def alarms(data: Any) -> dict[str, Any]:
    """An alarm on every row, and random scores with alarms on 5 % of the rows."""
    segments = data.segment_names()
    scores = np.random.default_rng(0).random(len(data.labels))
    return alarm_baselines(evaluate_scores(scores, data.labels, 0.95, segments=segments))


def classes(data: Any) -> dict[str, Any]:
    """The most frequent training class."""
    truth = torch.from_numpy(data.encode(data.y_test))
    report = measure_classes(torch.zeros(len(truth), len(data.classes)), truth)
    return class_baselines(data, report)


def main() -> None:
    measures = {"forecasting": forecasts, "anomaly": alarms, "classification": classes}
    results: dict[str, Any] = {}
    for name in names():
        if not find(name).present:
            continue
        data: Any = load(name)
        found = measures[data.task](data)
        rows = {name: row for name, row in found["rows"].items() if name != "model"}
        results[name] = {"task": data.task, "season": found.get("season"), "rows": rows}
        for label, row in rows.items():
            numbers = "  ".join(f"{k} {v:.3f}" for k, v in row.items() if v is not None)
            print(f"{name:28} {label:16} {numbers}", flush=True)
    write_json(OUT, results)


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
