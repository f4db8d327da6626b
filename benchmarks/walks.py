"""Which files of the package run on the five ways through it that a reader follows.

    python -m benchmarks.walks          # the number of files of each walk
    python -m benchmarks.walks --list   # and the files, in the order in which they first run

A file counts if one of its functions runs; importing it does not count. Every walk is done once
before it is traced, so that work which is done once in a process does not count either.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

import sacm
from sacm.cli.main import main as command_line

ROOT = Path(sacm.__file__).parents[1]
PACKAGES = ("sacm", "sacm_lab")
ROWS, STEPS_A_DAY = 900, 24
_OPTIMIZED = 1  # flag of the code of functions; that of modules and classes has it not
TRAIN = (
    *("train", "forecasting", "--data", "my.csv", "--backbone", "iTransformer"),
    *("--size", "small", "--epochs", "2"),
)
AIMS = {
    "one attached training step": 8,
    "sacm train forecasting --data my.csv": 70,
    "sacm predict latest": 35,
    "sacm quality my.csv": 30,
    "one protected batch": 7,
}


@contextlib.contextmanager
def trace() -> Iterator[list[str]]:
    """Collect the files of the package whose functions run, in the order of their first call."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_flags & _OPTIMIZED:
            return
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.name != "__init__.py":
            relative = path.relative_to(ROOT)
            if relative.parts[0] in PACKAGES:
                files[relative.as_posix()] = None

    found: list[str] = []
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        found.extend(files)


def run_command(*arguments: str) -> None:
    """Run a command of the command line without its output."""
    sys.argv = ["sacm", *arguments]
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        try:
            command_line()
        except SystemExit as ended:
            if ended.code not in (0, None):
                raise RuntimeError(f"sacm {' '.join(arguments)}: {silent.getvalue()}") from ended


def make_table() -> pd.DataFrame:
    """Two hourly channels with a held segment and an outlier."""
    random = np.random.default_rng(0)
    day = 2 * np.pi * np.arange(ROWS) / STEPS_A_DAY
    load = 40 + 6 * np.sin(day) + random.normal(0, 1, ROWS)
    heat = 8 - 3 * np.sin(day) + random.normal(0, 0.5, ROWS)
    load[300:330], heat[500] = load[300], 99
    times = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    return pd.DataFrame({"date": times, "load": load, "heat": heat})


def attached_step() -> Callable[[], None]:
    """A forward and a backward pass of an attached model, after its layouts are verified."""
    channels = 7
    model = nn.Sequential(nn.Linear(channels, 64), nn.Dropout(0.1), nn.Linear(64, channels))
    sacm.attach(model, channels=channels, example_inputs=torch.randn(32, 96, channels))
    model.train()
    for _ in range(6):
        model(torch.randn(32, 96, channels))
    return lambda: model(torch.randn(32, 96, channels)).pow(2).mean().backward()


def protected_batch(table: pd.DataFrame) -> Callable[[], None]:
    """A forward pass of a model whose inputs a guard repairs."""
    values = table[["load", "heat"]].to_numpy()
    model = nn.Linear(2, 2)
    sacm.protect(model, sacm.Guard(window=96).fit(values))
    windows = torch.tensor(values[:192], dtype=torch.float32).view(2, 96, 2)

    def forward() -> None:
        with torch.no_grad():
            model(windows)

    return forward


def walks(table: pd.DataFrame) -> dict[str, list[str]]:
    """The files of every walk, by its name; needs `my.csv` in the working folder."""
    step, batch = attached_step(), protected_batch(table)
    actions: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "one attached training step": (step, step),
        "sacm train forecasting --data my.csv": (
            lambda: run_command(*TRAIN),
            lambda: run_command(*TRAIN, "--seed", "7"),  # another run: the first is finished
        ),
        "sacm predict latest": (lambda: run_command("predict", "latest", "--data", "my.csv"),) * 2,
        "sacm quality my.csv": (lambda: run_command("quality", "my.csv"),) * 2,
        "one protected batch": (batch, batch),
    }
    traced = {}
    for name, (first, second) in actions.items():
        first()
        with trace() as files:
            second()
        traced[name] = files
    return traced


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the files, in order")
    options = parser.parse_args()
    table = make_table()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            table.to_csv("my.csv", index=False)
            traced = walks(table)
        finally:
            os.chdir(before)
    for name, files in traced.items():
        print(f"{name}: {len(files)} files (aim: {AIMS[name]})")
        if options.list:
            print("\n".join(f"  {file}" for file in files))


if __name__ == "__main__":
    main()
