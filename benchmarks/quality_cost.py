"""Cost of the guard in processor time: a table, a protected batch, rows of a stream, training.

An inspection with repair is compared with a running median of 25 values, a protected batch of
windows [32, 96, 7] with the same batch without the guard, and with --training five epochs of a
small iTransformer on ETTh1 with those without the guard, all in turns in one process.

    python -m benchmarks.quality_cost --rows 100000 --channels 10
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

import sacm
from benchmarks.timing import interleave, ratio
from sacm.backbones.registry import build
from sacm.quality.inspect import inspect
from sacm.tasks import make_settings
from sacm.training import Hardware, train

SEASON = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--channels", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--training", action="store_true", help="Measure nothing else.")
    options = parser.parse_args()
    if options.training:
        training(options.rounds)
        return
    for name, values in {
        "healthy": make_rows(options.rows, options.channels, broken=False),
        "3 % broken": make_rows(options.rows, options.channels, broken=True),
    }.items():
        frame = pd.DataFrame(values)
        functions: dict[str, Callable[[], object]] = {
            "inspect": partial(inspect_and_repair, values),
            "median": frame.rolling(25).median,
        }
        # Both keep one processor busy: in its time other work on the machine does not count.
        seconds = interleave(functions, rounds=options.rounds, warmup=1, clock=time.process_time)
        million = np.median(seconds["inspect"]) / values.size * 1e6
        print(
            f"{name}: inspect and repair over rolling(25).median(): "
            f"{ratio(seconds['inspect'], seconds['median'])}, "
            f"{million:.2f} seconds a million values",
            flush=True,
        )

    protected_batches(options.rounds)
    for channels in (1, 10, 1000):
        stream_rows(channels)


def training(rounds: int) -> None:
    """A whole training run, with its validation and test, with the guard and without."""

    def run(strategy: str) -> None:
        options: dict[str, Any] = {"size": "small", "epochs": 5, "patience": 5}
        settings = make_settings(
            task="forecasting", data="ETTh1", backbone="iTransformer", strategy=strategy, **options
        )
        with TemporaryDirectory() as folder:
            train(settings, folder=Path(folder), hardware=Hardware(show_progress=False))

    functions: dict[str, Callable[[], object]] = {n: partial(run, n) for n in ("raw", "guard")}
    seconds = interleave(functions, rounds=rounds, warmup=1, clock=time.process_time)
    print(f"training with the guard over raw {ratio(seconds['guard'], seconds['raw'])}")


def protected_batches(rounds: int) -> None:
    """A batch behind a guard, untouched and with a stuck channel in every window."""
    torch.manual_seed(0)
    rows = make_rows(4000, 7, broken=False)
    guard = sacm.Guard(window=96).fit(rows[:3000])
    clean = torch.from_numpy(np.stack([rows[3000 + k : 3096 + k] for k in range(32)])).float()
    faulty = clean.clone()
    faulty[:, 40:, 0] = faulty[:, 40:41, 0]
    for name, size in (("PatchTST", "paper"), ("PatchTST", "small"), ("iTransformer", "small")):
        bare, behind = (
            build(name, "forecasting", size=size, channels=7, input_len=96, horizon=96).eval()
            for _ in range(2)
        )
        sacm.protect(behind, guard)
        functions = {
            "bare": partial(answer, bare, clean),
            "clean": partial(answer, behind, clean),
            "faulty": partial(answer, behind, faulty),
        }
        seconds = interleave(functions, rounds=8 * rounds, clock=time.process_time)
        print(
            f"{name} {size}: protected over bare {ratio(seconds['clean'], seconds['bare'])}, "
            f"one channel stuck {ratio(seconds['faulty'], seconds['bare'])}",
            flush=True,
        )


@torch.inference_mode()
def answer(model: torch.nn.Module, windows: torch.Tensor) -> object:
    return model(windows)


def stream_rows(channels: int, count: int = 200) -> None:
    """Rows a second that one stream judges."""
    rows = make_rows(1500, channels, broken=False)
    stream = sacm.Guard(window=96).fit(rows[:1200]).stream()
    began = time.process_time()
    for row in rows[1200 : 1200 + count]:
        stream.push(row)
    spent = time.process_time() - began
    print(f"stream of {channels} channels: {count / spent:.0f} rows a second", flush=True)


def inspect_and_repair(values: np.ndarray) -> object:
    return inspect(values).repaired


def make_rows(rows: int, channels: int, *, broken: bool, seed: int = 0) -> np.ndarray:
    """Waves with noise, `[rows, channels]`; with gaps, stuck stretches and spikes if `broken`."""
    generator = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(rows)[:, None] / SEASON + np.arange(channels)
    values = np.sin(phase) + 0.2 * generator.standard_normal((rows, channels))
    if not broken:
        return values
    for channel in range(channels):
        column = values[:, channel]
        for first in generator.integers(0, rows - SEASON, rows // (100 * SEASON)):
            column[first : first + SEASON] = np.nan
        for first in generator.integers(0, rows - SEASON, rows // (100 * SEASON)):
            column[first : first + SEASON] = column[first]
        column[generator.integers(0, rows, rows // 100)] += 5.0
    return values


if __name__ == "__main__":
    main()
