"""Training steps of every backbone: raw, and with SACM by two versions of the code.

All three run turn by turn in one process. Processor time is measured, so what other processes do on
the machine counts only as far as they share its caches.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import os
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import torch

HERE = Path(__file__).parents[1]
SIZES = ("small", "paper")
FEWEST, MOST = 3, 150  # rounds
PATIENCE = (
    8  # budgets after which fewer rounds must do: the slowest steps take ten seconds and more
)


def load(checkout: Path) -> ModuleType:
    """Import `benchmarks.backbones` and all it needs of one checkout, apart from any other's."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("sacm", "benchmarks")]:
        del sys.modules[name]
    sys.path[:0] = [str(checkout / "src"), str(checkout)]
    module = importlib.import_module("benchmarks.backbones")
    for part in ("sacm.inject", "sacm.core", "sacm.backbones"):  # nothing may be imported later
        for found in pkgutil.walk_packages(importlib.import_module(part).__path__, f"{part}."):
            importlib.import_module(found.name)
    attach = module.sacm.attach
    assert Path(sys.modules[attach.__module__].__file__ or "").is_relative_to(checkout)
    del sys.path[:2]
    return module


def make_steps(
    name: str, task: Any, size: Any, versions: dict[str, ModuleType]
) -> dict[str, Callable[[], object]]:
    """Training steps from the same weights on the same windows."""
    length = 100 if task == "anomaly" else 96
    steps: dict[str, Callable[[], object]] = {}
    for version, module in versions.items():
        x = torch.randn(module.BATCH, length, module.CHANNELS, generator=torch.manual_seed(0))
        raw = module.build(name, task, size=size, length=length)
        attached = copy.deepcopy(raw)
        module.sacm.attach(attached, channels=module.CHANNELS, example_inputs=x)
        steps = {"raw": module.training_step(raw, x)} | steps
        steps[version] = module.training_step(attached, x)
    return steps


def measure(steps: dict[str, Callable[[], object]], budget: float) -> dict[str, list[float]]:
    """Processor seconds of every step, for about `budget` seconds; the order rotates."""
    order, start = list(steps), time.perf_counter()
    for name in order:
        steps[name]()
    seconds: dict[str, list[float]] = {name: [] for name in order}
    for turn in range(MOST):
        spent = time.perf_counter() - start
        if (turn >= FEWEST and spent > budget) or (turn >= 1 and spent > PATIENCE * budget):
            break
        for name in order:
            begin = time.process_time()
            steps[name]()
            seconds[name].append(time.process_time() - begin)
        order = [*order[1:], order[0]]
    return seconds


def describe(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Milliseconds of the raw step, and ratios to it as [lower quartile, median, upper]."""
    row: dict[str, Any] = {"rounds": len(seconds["raw"])}
    row["raw_ms"] = round(1e3 * statistics.median(seconds["raw"]), 3)
    for version in [name for name in seconds if name != "raw"]:
        pairs = zip(seconds[version], seconds["raw"], strict=True)
        ratios = [a / b for a, b in pairs]
        # One round has no quartiles; its ratio stands for all three.
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        row[version] = [round(q, 3) for q in quartiles]
    return row


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows that an interrupted table has already."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return rows


def main(
    before: Path, output: Path, budget: float, sizes: list[str], only: list[str], *, resume: bool
) -> None:
    torch.set_num_threads(1)
    versions = {"before": load(before.resolve()), "after": load(HERE)}
    module = versions["after"]
    command = (
        f"python -m benchmarks.speed_table --before CHECKOUT --output {output} --budget {budget:g}"
    )
    table: dict[str, Any] = {"command": command, "clock": "process time", "threads": 1}
    table["rows"] = rows = read_rows(output) if resume else []
    done = {(row["name"], row["task"], row["size"]) for row in rows}
    todo = [
        (name, task, size)
        for size in sizes
        for task in get_args(module.TaskName)
        for name in module.backbones.names(task)
        if (not only or name in only) and (name, task, size) not in done
    ]
    for number, (name, task, size) in enumerate(todo, start=1):
        start = time.perf_counter()
        row = describe(measure(make_steps(name, task, size, versions), budget))
        load_now = round(os.getloadavg()[0], 1)
        rows.append({"name": name, "task": task, "size": size, **row, "load": load_now})
        part = output.with_suffix(".part")
        part.write_text(json.dumps(table, indent=1) + "\n")
        part.replace(output)  # whole at any time, so that a stopped table can be resumed
        taken = time.perf_counter() - start
        print(f"{number} of {len(todo)}, {taken:.0f} s: {rows[-1]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="checkout to compare with")
    parser.add_argument("--output", type=Path, default=Path("results/costs/backbones.json"))
    parser.add_argument("--budget", type=float, default=15.0, help="seconds for each network")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    given = parser.parse_args()
    main(given.before, given.output, given.budget, given.sizes, given.only, resume=given.resume)
