"""What every strategy costs: time and memory of a training step and of a prediction, against raw.

Each strategy is measured in the first task that it is for, with PatchTST small, batches of 32
windows of 96 steps and 7 channels. Steps of all strategies run turn by turn in one process and one
thread, in processor time; ratios are paired round by round. `before` is what a strategy does before
the first step, in seconds, on 2,500 rows. Memory is the highest
sum of what a step allocates on top of weights and optimizer, plus these.

    python -m benchmarks.strategies_cost [results/costs/strategies.json]
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks import make_parser
from benchmarks.timing import interleave, ratio
from sacm.data import AnomalyData, forecasting_data
from sacm.data.cases import from_padded
from sacm.data.datasets import AnyData
from sacm.strategies.registry import STRATEGIES, names
from sacm.tasks import get_task, make_settings
from sacm.training.trainer import Training

LENGTH, CHANNELS, BATCH = 96, 7, 32
NEEDED = {"fixed": "fixed(p=0.2)"}  # strategies that need an option
VARIANTS = (
    "sacm(score=amplitude)",
    "expose(consistency=1)",
    "guard+sacm",
)


def make_data(task: str) -> AnyData:
    """Sines with noise."""
    random = np.random.default_rng(0)
    time = np.arange(2500)[:, None] / np.linspace(12, 48, CHANNELS)
    rows = np.sin(2 * np.pi * time) + 0.2 * random.normal(size=(2500, CHANNELS))
    if task == "forecasting":
        return forecasting_data(rows)
    if task == "anomaly":
        labels = np.zeros(1500, dtype=np.uint8)
        labels[200:220] = 1
        names = tuple(map(str, range(CHANNELS)))
        rows = rows.astype(np.float32)
        return AnomalyData("data", rows[:1000], rows[1000:], labels, names)
    cases = random.normal(size=(120, CHANNELS, LENGTH))
    kinds = np.arange(120) % 3
    train, test = {"X_train": cases[:80], "y_train": kinds[:80]}, {"X_test": cases[80:]}
    return from_padded({**train, **test, "y_test": kinds[80:]}, "data")


def make_training(strategy: str, task: str, folder: Path) -> Training:
    """A run of PatchTST small that is ready for its first step."""
    chosen, data = get_task(task), make_data(task)  # type: ignore[arg-type]  # a task's name
    sizes: dict[str, Any] = {"input_len": LENGTH, "batch_size": BATCH}
    if task == "forecasting":
        sizes |= {"horizon": LENGTH}
    settings = make_settings(
        task=task, data="memory", backbone="PatchTST", size="small", strategy=strategy, **sizes
    )
    fabric = Fabric(accelerator="cpu", devices=1)
    resolved = chosen.resolve(settings, data)
    training = Training(folder, resolved, data, fabric)
    training.strategy_run.begin_epoch(1)
    training.model.train()
    return training


def predict(training: Training, batch: Any) -> None:
    """Answer for one batch as an evaluation does."""
    training.model.eval()
    with torch.inference_mode():
        x = training.strategy.inputs(batch.x)
        if training.task.name == "anomaly":
            training.model.anomaly_scores(x)  # type: ignore[operator]  # a detector
        else:
            training.model(x)
    training.model.train()


def peak_bytes(training: Training, batch: Any) -> int:
    """The most memory that a step needs, with weights and optimizer."""
    state = training.optimizer.state.values()
    held: list[Tensor] = [*training.model.parameters(), *training.model.buffers()]
    held += [value for one in state for value in one.values() if isinstance(value, Tensor)]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        training.step(batch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    memory = [event for event in events if event.get("name") == "[memory]"]
    changes = [event["args"]["Bytes"] for event in sorted(memory, key=lambda each: each["ts"])]
    return sum(each.nbytes for each in held) + int(np.cumsum(changes).max(initial=0))


def measure(task: str, strategies: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Ratios to raw of all strategies in one task."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            text: make_training(text, task, Path(folder) / str(number))
            for number, text in enumerate(["raw", *strategies])
        }
        batch = next(iter(runs["raw"].train_batches))
        steps: dict[str, Callable[[], object]] = {
            text: partial(run.step, batch) for text, run in runs.items()
        }
        # The method verifies its layouts in the first steps, so these do not count.
        seconds = interleave(steps, rounds=rounds, warmup=12, clock=time.process_time)
        answers = interleave(
            {text: partial(predict, run, batch) for text, run in runs.items()},
            rounds=rounds,
            clock=time.process_time,
        )
        memory = {text: peak_bytes(run, batch) for text, run in runs.items()}
        before = {text: run.progress.seconds for text, run in runs.items()}
    found = {}
    for text in runs:
        step = ratio(seconds[text], seconds["raw"])
        found[text] = {
            "task": task,
            "step_ratio": round(step.median, 3),
            "step_quartiles": [round(step.low, 3), round(step.high, 3)],
            "step_ms": round(1000 * statistics.median(seconds[text]), 2),
            "memory_ratio": round(memory[text] / memory["raw"], 3),
            "memory_mb": round(memory[text] / 2**20, 2),
            "prediction_ratio": round(ratio(answers[text], answers["raw"]).median, 3),
            "before_seconds": round(before[text], 3),
        }
    return found


def main(rounds: int = 15) -> dict[str, Any]:
    """Measure and print every strategy."""
    by_task: dict[str, list[str]] = {}
    for name in names():
        if name not in ("raw", "race"):  # a race trains its members
            text = NEEDED.get(name, name)
            by_task.setdefault(STRATEGIES.get(name).tasks[0], []).append(text)
    by_task["forecasting"] += VARIANTS
    found: dict[str, Any] = {}
    print("PatchTST small, 32 windows of 96 steps and 7 channels; ratios to raw")
    print(f"{'strategy':42}{'step':>7}{'memory':>9}{'prediction':>12}{'before (s)':>12}")
    for task, strategies in by_task.items():
        for text, row in measure(task, strategies, rounds).items():
            found[text if text != "raw" else f"raw ({task})"] = row
            numbers = f"{row['step_ratio']:7.2f}{row['memory_ratio']:9.2f}"
            numbers += f"{row['prediction_ratio']:12.2f}{row['before_seconds']:12.2f}"
            print(f"{text:42}{numbers}", flush=True)
    return found


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("out", nargs="?", type=Path, help="JSON file to write")
    torch.set_num_threads(1)
    options = parser.parse_args()
    results = main()
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1) + "\n")
