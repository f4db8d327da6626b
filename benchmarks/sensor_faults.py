"""Faults at test (SensorFault-Bench, arXiv:2605.10822): a trained network raw and protected.

All rows, split .6/.2/.2 in time, z-scores of the training rows. Severity is uniform, one draw a
window, the same for every fault; faults hit inputs only. D = fault MSE / clean MSE of the same
pipeline, D_w the largest D. Intervals are bootstrapped over blocks of neighbouring windows.

    python -m benchmarks.sensor_faults --data ETTh1 --backbone PatchTST --size small --seeds 1,2
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.forecasters import Rows, cut, load_rows, predict, train_forecaster
from benchmarks.timing import interleave, ratio
from sacm.data.corrupt import corrupt_windows
from sacm.quality.config import GuardConfig
from sacm.quality.protect import protect, unprotect
from sacm.quality.windows import WindowGuard, fit_window_guard
from sacm_lab.robust.faults import TESTED, TRANSFER

BLOCKS = 50
DRAWS = 1000
BATCH = 256


def make_inputs(
    rows: Rows, *, part: str, count: int, input_len: int, horizon: int, faults: dict[str, Any],
    seed: int,
) -> tuple[dict[str, Tensor], Tensor]:  # fmt: skip
    """Inputs by fault, `clean` among them, each [N, L, C] in time order, and targets [N, H, C]."""
    first, stop = (rows.val, len(rows.z)) if part == "test" else (rows.train, rows.val)
    starts = np.arange(first, stop - input_len - horizon + 1)
    random = np.random.default_rng(seed)
    if count < len(starts):
        starts = np.sort(random.choice(starts, count, replace=False))
    x, y = cut(rows.z, input_len, horizon, starts)
    severity = torch.from_numpy(random.random(len(x)).astype(np.float32))
    broken = {
        kind: corrupt_windows(x, kind, severity, seed=seed + 100 + i)
        for i, kind in enumerate(faults)
    }
    return {"clean": x, **broken}, y


def forecast(model: nn.Module, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Forecasts [N, H, C] by fault."""
    return {kind: predict(model, x, BATCH) for kind, x in inputs.items()}


def errors_of(forecasts: dict[str, Tensor], y: Tensor) -> dict[str, np.ndarray]:
    """MSE of every window by fault."""
    return {
        kind: (each - y).square().mean((1, 2)).double().numpy() for kind, each in forecasts.items()
    }


def average(members: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the networks' forecasts by fault."""
    return {kind: torch.stack([member[kind] for member in members]).mean(0) for kind in members[0]}


def summarise(errors: dict[str, np.ndarray]) -> dict[str, float]:
    """Clean MSE, mean fault MSE, D of every fault and the largest."""
    clean = float(errors["clean"].mean())
    faults = {kind: float(e.mean()) for kind, e in errors.items() if kind != "clean"}
    degradation = {kind: e / clean for kind, e in faults.items()}
    return {
        "clean": clean,
        "mean_fault": float(np.mean(list(faults.values()))),
        "D_w": max(degradation.values()),
        **degradation,
    }


def intervals(raw: dict[str, np.ndarray], own: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """95 % intervals of the protected figures and of their change, by blocks of windows."""
    random = np.random.default_rng(0)
    blocks = np.array_split(np.arange(len(raw["clean"])), BLOCKS)
    found: dict[str, list[float]] = {}
    for _ in range(DRAWS):
        chosen = np.concatenate([blocks[b] for b in random.integers(0, BLOCKS, BLOCKS)])
        before = summarise({kind: e[chosen] for kind, e in raw.items()})
        after = summarise({kind: e[chosen] for kind, e in own.items()})
        for key, value in after.items():
            found.setdefault(key, []).append(value)
        for key in ("clean", "mean_fault"):
            found.setdefault(f"{key}_change", []).append(after[key] / before[key] - 1)
        found.setdefault("D_w_change", []).append(after["D_w"] - before["D_w"])
    return {key: np.quantile(values, [0.025, 0.975]).tolist() for key, values in found.items()}


def cost(model: nn.Module, guard: WindowGuard, inputs: dict[str, Tensor]) -> dict[str, float]:
    """Time of the protected network as a ratio to the raw one, one thread, turn by turn."""
    picked = {kind: x[:BATCH].contiguous() for kind, x in inputs.items()}
    hit = guard.flags(inputs["clean"]).flatten(1).any(1)
    healthy = inputs["clean"][~hit][:BATCH].contiguous()
    cases = {"no evidence": healthy, "as they come": picked["clean"]}
    stuck = inputs.get("stuck_sensor")
    if stuck is not None:
        cases["all stuck"] = stuck[:BATCH].contiguous()
    kinds = [x[i::8] for i, (k, x) in enumerate(picked.items()) if k != "clean"]
    cases["all faulty"] = torch.cat(kinds)[:BATCH].contiguous()
    ratios = {"share_without_evidence": float((~hit).float().mean())}
    for name, x in cases.items():
        if len(x) < 16:
            continue
        both = {
            "raw": partial(predict, model, x, BATCH),
            "guard": torch.no_grad()(partial(guard, x)),
        }
        seconds = interleave(both, rounds=15, warmup=2)
        ratios[name] = 1 + ratio(seconds["guard"], seconds["raw"]).median
    return ratios


def show(name: str, figures: dict[str, float]) -> None:
    print(
        f"{name:24}" + " ".join(f"{key} {value:.4f}" for key, value in figures.items()), flush=True
    )


def cached(rows: Rows, options: argparse.Namespace, seed: int) -> nn.Module:
    """Train, or read what was trained with the same options."""
    train = partial(
        train_forecaster, rows, options.backbone, size=options.size, seed=seed,
        input_len=options.input_len, horizon=options.horizon, stride=options.stride,
        epochs=options.epochs, learning_rate=options.learning_rate, loss=options.loss,
    )  # fmt: skip
    if options.models is None:
        return train()
    facts = [options.data, options.backbone, options.size, options.stride, options.epochs]
    facts += [options.learning_rate, options.loss, seed]
    path = Path(options.models) / ("_".join(map(str, facts)) + ".pt")
    if path.exists():
        model = train(epochs=0)
        model.load_state_dict(torch.load(path))
        return model
    model = train()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), path)
    return model


def run(options: argparse.Namespace) -> dict[str, Any]:
    rows = load_rows(options.data)
    config = GuardConfig(false_events=options.false_events)
    guard = fit_window_guard(rows.z[: rows.train], options.input_len, config=config)
    inputs, y = make_inputs(
        rows, part=options.part, count=options.windows, input_len=options.input_len,
        horizon=options.horizon, faults=TESTED if options.faults == "tested" else TRANSFER,
        seed=options.fault_seed,
    )  # fmt: skip
    settings = {k: v for k, v in vars(options).items() if k not in ("models", "out")}
    record: dict[str, Any] = {"settings": settings, "seeds": {}}
    record["flagged"] = {kind: float(guard.flags(x).float().mean()) for kind, x in inputs.items()}
    show("share of flagged values", record["flagged"])
    alone: list[dict[str, Tensor]] = []
    guarded: list[dict[str, Tensor]] = []
    for seed in map(int, options.seeds.split(",")):
        model = cached(rows, options, seed)
        alone.append(forecast(model, inputs))
        guarded.append(forecast(protect(model, guard), inputs))
        unprotect(model)
        raw, own = errors_of(alone[-1], y), errors_of(guarded[-1], y)
        before, after = summarise(raw), summarise(own)
        show(f"seed {seed} raw", before)
        show(f"seed {seed} protected", after)
        record["seeds"][seed] = {
            "raw": before,
            "protected": after,
            "intervals": intervals(raw, own),
            "cost": cost(model, guard, inputs),
        }
        change = {k: after[k] / before[k] - 1 for k in ("clean", "mean_fault")}
        show(f"seed {seed} change", change)
        show(f"seed {seed} cost", record["seeds"][seed]["cost"])
    if len(alone) > 1:
        raw, own = errors_of(average(alone), y), errors_of(average(guarded), y)
        record["together"] = {
            "raw": summarise(raw),
            "protected": summarise(own),
            "intervals": intervals(raw, own),
        }
        show("all networks raw", record["together"]["raw"])
        show("all networks protected", record["together"]["protected"])
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ETTh1")
    parser.add_argument("--backbone", default="PatchTST")
    parser.add_argument("--size", default="small", choices=("small", "paper"))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--windows", type=int, default=2000)
    parser.add_argument("--input-len", type=int, default=96)
    parser.add_argument("--horizon", type=int, default=96)
    parser.add_argument("--stride", type=int, default=4, help="of training windows")
    parser.add_argument("--epochs", type=int, default=25, help="at most")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--loss", default="mae", choices=("mae", "mse"))
    parser.add_argument("--false-events", type=float, default=1.0)
    parser.add_argument("--faults", default="tested", choices=("tested", "transfer"))
    parser.add_argument("--part", default="test", choices=("val", "test"))
    parser.add_argument("--fault-seed", type=int, default=0)
    parser.add_argument("--models", help="folder to keep trained networks in")
    parser.add_argument("--out", help="JSON file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = run(options)
    if options.out:
        Path(options.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
