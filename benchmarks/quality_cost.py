"""Cost of an inspection with repair against a running median of 25 values, in processor time.

python -m benchmarks.quality_cost --rows 100000 --channels 10
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.timing import interleave, ratio
from sacm.quality.inspect import inspect

SEASON = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--channels", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
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
