"""Train on broken rows, test on clean ones: what each strategy wins back.

    python -m benchmarks.contaminated_training --data ETTh1,ILI --seeds 1,2,3 --out FILE.json

Training and validation rows are contaminated (a mix of points, bursts, held values and zeros in
30 % of the values), test rows are clean. Errors are in deviations of the clean training rows.
Recovered share: (raw on broken rows - strategy) / (raw on broken rows - raw on clean rows).
Finished runs are kept in --runs and not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import sacm.data
from sacm.data import ForecastingData, corrupt_training
from sacm.tasks import make_settings
from sacm.training import Hardware, train

STRATEGIES = ("raw", "guard", "sacm", "guard+sacm")
STRIDES = {"ETTm1": 32, "ETTm2": 32, "Weather": 32, "ECG": 32, "ILI": 1}


def run_one(
    data: ForecastingData, clean: ForecastingData, strategy: str, seed: int, args: Any
) -> dict[str, float]:
    """Test errors of one run, in deviations of the clean training rows."""
    settings = make_settings(
        task="forecasting",
        data=clean.name,
        backbone=args.backbone,
        size="small",
        strategy=strategy,
        seed=seed,
        input_len=24 if clean.name == "ILI" else 96,
        horizon=24 if clean.name == "ILI" else 36 if clean.name == "ECG" else 96,
        stride=STRIDES.get(clean.name, 8),
        epochs=args.epochs,
        patience=4,
        learning_rate=1e-3,
    )
    hardware = Hardware(show_progress=False)
    run = train(settings, folder=args.runs, hardware=hardware, data=data)
    errors = run.metrics["report"]["raw"]
    rows = clean.splits.train
    deviation = clean.values[rows.start : rows.stop].astype(np.float64).std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    mse = np.mean(np.array(errors["channel_mse"]) / deviation**2)
    mae = np.mean(np.array(errors["channel_mae"]) / deviation)
    return {"mse": float(mse), "mae": float(mae), "seconds": run.metrics["train_seconds"]}


def measure(name: str, args: Any) -> dict[str, Any]:
    """All rows of one data set."""
    clean: Any = sacm.data.load(name)
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in args.seeds:
        broken = corrupt_training(clean, f"{args.kind}({args.share})", seed=100 * seed)
        for strategy in STRATEGIES:
            for label, data in (("clean", clean), ("broken", broken)):
                if label == "clean" and strategy not in ("raw", "guard"):
                    continue
                found = run_one(data, clean, strategy, seed, args)
                rows.setdefault(f"{strategy} on {label}", []).append(found)
                print(f"{name} seed {seed} {strategy} on {label}: {found['mse']:.4f}", flush=True)
    return {"rows": rows, "recovered": recovered(rows)}


def recovered(rows: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Recovered share of the mean over seeds, and the change on clean data."""
    mean = {
        row: {key: float(np.mean([each[key] for each in runs])) for key in ("mse", "mae")}
        for row, runs in rows.items()
    }
    lost = {key: mean["raw on broken"][key] - mean["raw on clean"][key] for key in ("mse", "mae")}
    shares = {
        row: {key: (mean["raw on broken"][key] - own[key]) / lost[key] for key in lost}
        for row, own in mean.items()
        if row.endswith("broken")
    }
    clean = {
        key: mean["guard on clean"][key] / mean["raw on clean"][key] - 1 for key in ("mse", "mae")
    }
    return {**shares, "guard on clean, change": clean}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ETTh1", type=lambda text: text.split(","))
    parser.add_argument("--seeds", default="1,2,3", type=lambda t: [int(s) for s in t.split(",")])
    parser.add_argument("--backbone", default="iTransformer")
    parser.add_argument("--kind", default="mix")
    parser.add_argument("--share", default=0.3, type=float)
    parser.add_argument("--epochs", default=15, type=int)
    parser.add_argument("--runs", default=Path("runs/contaminated"), type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name in args.data:
        results[name] = measure(name, args)
        for row, shares in results[name]["recovered"].items():
            print(f"{name}: {row}: MSE {shares['mse']:+.1%}, MAE {shares['mae']:+.1%}", flush=True)
        if args.out is not None:
            settings = {k: str(v) for k, v in vars(args).items() if k not in ("out", "runs")}
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text(json.dumps({"settings": settings, "data": results}, indent=1))


if __name__ == "__main__":
    main()
