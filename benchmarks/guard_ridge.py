"""Share of the forecast error that the guard recovers on broken training rows, with a ridge.

A ridge regression forecasts 96 rows from 96 (ILI: 24 from 24), the last value taken off, channels
pooled. Rows are split 70/10/20; training and validation rows are broken on purpose, test rows are
clean. Fail values are repaired as inputs and left out as targets; suspect values count half.

    python -m benchmarks.guard_ridge --out results/guard/ridge_development.csv
    python -m benchmarks.guard_ridge --fresh --out results/guard/ridge_confirmation.csv
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import sacm
from sacm_lab.robust.faults.fault import corrupt_series

Array = np.ndarray
DEVELOPMENT = {  # rows used, look-back and horizon
    "ETTh1": (17420, 96),
    "Exchange": (7588, 96),
    "ILI": (966, 24),
    "ETTm1": (20000, 96),
    "ETTm2": (20000, 96),
    "ECG": (20000, 96),
    "Weather": (15000, 96),
}
FRESH = {
    "ETTh2": (17420, 96),
    "ETTm1@40000": (20000, 96),
    "ETTm2@40000": (20000, 96),
    "ECG@40000": (20000, 96),
    "Weather@30000": (15000, 96),
}
FAULTS = {"mix30": ("mix", 0.3), "tsf30": ("tsf_gaussian", 0.3), "mix10": ("mix", 0.1)}
MOST_WINDOWS = 40_000
TEST_WINDOWS = 20_000
PENALTIES = (1e-1, 1.0, 10.0, 100.0, 1e3, 1e4)
TURNS = 6  # of filling targets that do not count by the model's own prediction


def load_rows(name: str, rows: int) -> Array:
    """Rows of a data set `[T, C]`; `name@1000` begins at row 1,000."""
    file, _, first = name.partition("@")
    path = Path(os.environ["SACM_DATA"]) / "forecasting" / f"{file}.npz"
    start = int(first or 0)
    values: Array = np.load(path, allow_pickle=True)["values"]
    return values[start : start + rows]


class Ridge:
    """One data set: its rows, its split and the ridge that is fitted to them."""

    def __init__(self, name: str, rows: int, length: int) -> None:
        values = load_rows(name, rows)
        self.name, self.length = name, length
        self.train, self.stop = int(0.7 * len(values)), int(0.8 * len(values))
        self.rows = values[: self.stop]
        training = self.rows[: self.train].astype(float)
        self.mean, self.scale = training.mean(0), training.std(0)
        self.scale[self.scale == 0] = 1
        scaled = (values.astype(float) - self.mean) / self.scale
        self.test = self.windows(scaled[self.stop - length :], TEST_WINDOWS)[:2]
        x, y, _ = self.windows(scaled[: self.train], MOST_WINDOWS)
        held = self.windows(scaled[self.train - length : self.stop], TEST_WINDOWS)
        errors = [
            float(((held[1] - held[0] @ self.solve(x.T @ x, x.T @ y, penalty)) ** 2).mean())
            for penalty in PENALTIES
        ]
        self.penalty = PENALTIES[int(np.argmin(errors))]
        self.clean = self.error(scaled[: self.stop])

    def windows(
        self, scaled: Array, most: int, weight: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Inputs, targets and weights of the targets, the last input taken off."""
        length = self.length
        count = (len(scaled) - 2 * length + 1) * scaled.shape[1]
        stride = max(1, int(np.ceil(count / most)))
        cut = sliding_window_view(scaled, 2 * length, axis=0)[::stride].reshape(-1, 2 * length)
        cut = cut.astype(np.float32)
        base = cut[:, length - 1 : length]
        counts = np.ones_like(scaled) if weight is None else weight
        weights = sliding_window_view(counts, 2 * length, axis=0)[::stride]
        weights = weights.reshape(-1, 2 * length)[:, length:].astype(np.float32)
        return cut[:, :length] - base, cut[:, length:] - base, weights

    def solve(self, product: Array, right: Array, penalty: float | None = None) -> Array:
        """Weights of the ridge."""
        own = self.penalty if penalty is None else penalty
        square = product.astype(np.float64) + own * np.eye(len(product))
        return np.linalg.solve(square, right.astype(np.float64)).astype(np.float32)

    def error(self, scaled: Array, weight: Array | None = None) -> float:
        """Test MSE of a ridge fitted to rows, targets counting by their weight `[T, C]`."""
        x, y, counts = self.windows(scaled, MOST_WINDOWS, weight)
        product = x.T @ x
        beta = self.solve(product, x.T @ y)
        for _ in range(TURNS if weight is not None else 0):
            y = np.where(counts < 1, counts * y + (1 - counts) * (x @ beta), y)
            beta = self.solve(product, x.T @ y)
        inputs, targets = self.test
        return float(((targets - inputs @ beta) ** 2).mean())


def break_rows(data: Ridge, fault: str, seed: int) -> tuple[Array, Array]:
    """Broken training and validation rows, and what was broken."""
    kind, ratio = FAULTS[fault]
    values, broken = data.rows.astype(float), np.zeros(data.rows.shape, bool)
    for turn, part in enumerate((slice(0, data.train), slice(data.train, data.stop))):
        result = corrupt_series(data.rows[part], kind, ratio, seed=seed + turn)
        values[part], broken[part] = result.values, result.corrupted
    return values, broken


def arms(data: Ridge, values: Array, broken: Array | None) -> list[dict[str, object]]:
    """One line for each way to treat the rows."""
    scaled = (values - data.mean) / data.scale
    lines: list[dict[str, object]] = []
    if broken is not None:
        from sacm.quality.predictor import Rows
        from sacm.quality.repair import RepairModel

        lines.append({"arm": "raw", "mse": data.error(scaled)})
        rows = Rows([range(len(values))])
        filled = RepairModel.learn(values, broken, rows).fill(values, broken, rows)
        lines.append(measure(data, "oracle", filled, np.where(broken, 0.0, 1.0)))
    began = time.process_time()
    quality = sacm.inspect(values)
    seconds = time.process_time() - began
    line = measure(data, "guard", np.asarray(quality.repaired), _weights(quality.grades))
    grades = np.asarray(quality.grades)
    line["seconds"] = round(seconds, 2)
    for name, grade in (("fail", 2), ("suspect", 1)):
        own = grades == grade
        starts = np.diff(np.vstack([np.zeros((1, own.shape[1])), own]), axis=0) == 1
        line[f"{name}_events"] = round(1e4 * starts.sum() / own.size, 2)
        line[f"{name}_share"] = round(float(own.mean()), 5)
    if broken is not None:
        changed = broken & (np.abs(values - data.rows) > 1e-9)
        fail = grades == 2
        line["precision"] = round(float((fail & broken).sum() / max(1, fail.sum())), 3)
        line["recall"] = round(float((fail & changed).sum() / max(1, changed.sum())), 3)
    lines.append(line)
    return lines


def _weights(grades: Array) -> Array:
    """Weights of targets: fail 0, suspect as the guard's default says, normal 1."""
    from sacm.quality.config import GuardConfig

    return np.select([grades == 2, grades == 1], [0.0, GuardConfig().suspect_weight], 1.0)


def measure(data: Ridge, arm: str, repaired: Array, weight: Array) -> dict[str, object]:
    """The line of one arm."""
    return {"arm": arm, "mse": data.error((repaired - data.mean) / data.scale, weight)}


def main() -> None:
    """Write one line for each set, fault, seed and arm; print the mean shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="confirmation rows, seed 23")
    parser.add_argument("--sets", default="")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--faults", default="clean,mix30,tsf30,mix10")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    sets = FRESH if asked.fresh else DEVELOPMENT
    seeds = [int(s) for s in (asked.seeds or ("23" if asked.fresh else "21,22")).split(",")]
    names = asked.sets.split(",") if asked.sets else list(sets)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, object]] = []
    for name in names:
        data = Ridge(name, *{**DEVELOPMENT, **FRESH}[name])
        for fault in asked.faults.split(","):
            for seed in seeds[:1] if fault == "clean" else seeds:
                given = (data.rows.astype(float), None)
                values, broken = given if fault == "clean" else break_rows(data, fault, seed)
                found = arms(data, values, broken)
                raw = data.clean if broken is None else found[0]["mse"]
                lost = raw - data.clean
                for line in found:
                    line.update(set=name, fault=fault, seed=seed, clean=data.clean)
                    line["above_clean_percent"] = round(100 * (line["mse"] / data.clean - 1), 2)
                    if lost > 0.015 * data.clean:
                        line["recovered_percent"] = round(100 * (raw - line["mse"]) / lost, 1)
                    print({k: v for k, v in line.items() if k not in ("clean",)}, flush=True)
                lines += found
    keys = ["set", "fault", "seed", "arm"]
    keys += sorted({key for line in lines for key in line} - set(keys))
    with asked.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, keys)
        writer.writeheader()
        writer.writerows(lines)
    for fault in asked.faults.split(","):
        for arm in ("raw", "oracle", "guard"):
            own = [line for line in lines if line["fault"] == fault and line["arm"] == arm]
            shares: dict[str, list[float]] = {}
            for line in own:
                if "recovered_percent" in line:
                    shares.setdefault(str(line["set"]), []).append(line["recovered_percent"])
            if own:
                above = np.mean([line["above_clean_percent"] for line in own])
                mean = np.mean([np.mean(v) for v in shares.values()]) if shares else float("nan")
                text = " ".join(f"{k} {np.mean(v):.0f}" for k, v in shares.items())
                print(f"{fault} {arm}: +{above:.2f} %, recovered {mean:.1f} % ({text})")


if __name__ == "__main__":
    main()
