"""What an epoch of every network costs: `python -m benchmarks.typical_costs`.

A few batches of noise with two numbers of channels, and a line through both. Writes the table that
plans guess by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sacm.backbones import names
from sacm.data import AnomalyData, ClassificationData, forecasting_data
from sacm.experiments.costs import measure_epoch
from sacm.experiments.guess_cost import TABLE, Extent, Typical, count_windows
from sacm.files import write_json
from sacm.tasks import get_task, make_settings
from sacm.types import TaskName

FEW, MANY, ROWS, CASES, LENGTH = 2, 12, 3000, 200, 96
TASKS: tuple[TaskName, ...] = ("forecasting", "classification", "anomaly")


def make_noise(task: str, channels: int) -> Any:
    """Data of a task that are as good as any for a clock."""
    draw = np.random.default_rng(0)
    if task == "forecasting":
        return forecasting_data(draw.normal(size=(ROWS, channels)), name="noise")
    if task == "anomaly":
        rows = draw.normal(size=(ROWS, channels)).astype(np.float32)
        labels = np.zeros(ROWS, dtype=np.int64)
        return AnomalyData("noise", rows, rows, labels, tuple(map(str, range(channels))))
    cases = draw.normal(size=(CASES, channels, LENGTH)).astype(np.float32)
    labels, lengths = np.arange(CASES) % 4, np.full(CASES, LENGTH)
    return ClassificationData("noise", cases, labels, cases, labels, lengths, lengths, (0, 1, 2, 3))


def measure(task: TaskName, backbone: str, size: str) -> Typical:
    """The costs of one network."""
    lengths = {"input_len": LENGTH, "horizon": LENGTH} if task == "forecasting" else {}
    asked = make_settings(task=task, data="noise", backbone=backbone, size=size, **lengths)
    milliseconds = []
    for channels in (FEW, MANY):
        data = make_noise(task, channels)
        settings = get_task(task).resolve(asked, data)
        seconds = measure_epoch(settings, 1, data)
        milliseconds.append(1000 * seconds / count_windows(settings, Extent.of(data)))
    slope = max(0.0, (milliseconds[1] - milliseconds[0]) / (MANY - FEW))
    fixed = max(0.0, milliseconds[0] - FEW * slope)
    return Typical(round(fixed, 4), round(slope, 4), settings.input_len + settings.horizon)


def main() -> None:
    table = {}
    for task in TASKS:
        for backbone in names(task):
            for size in ("small", "paper"):
                found = measure(task, backbone, size)
                table[f"{task}|{backbone}|{size}"] = found._asdict()
                print(f"{task:15} {backbone:18} {size:6} {found}", flush=True)
    write_json(TABLE, table)


if __name__ == "__main__":
    main()
