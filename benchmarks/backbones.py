"""Milliseconds per training step of every backbone, raw and with SACM, turn by turn."""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable, Sequence
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

import sacm
from benchmarks.timing import interleave, ratio
from sacm import backbones
from sacm.backbones import Backbone, DetectorNetwork
from sacm.backbones.registry import Size
from sacm.types import TaskName

BATCH, CHANNELS, HORIZON, CLASSES = 32, 7, 96, 5
LIVE_AIM, OTHER_AIM = 1.00, 1.02  # with four or more dropout sites; with fewer
TOO_SLOW = ("TimesNet",)  # at the paper's size, where a step takes ten seconds and more
SLOW_STEP, FEW_ROUNDS, ROUNDS = 0.3, 7, 25  # seconds


def build(name: str, task: TaskName, *, size: Size, length: int) -> Backbone:
    torch.manual_seed(0)
    head: dict[TaskName, dict[str, Any]] = {
        "forecasting": {"horizon": HORIZON},
        "classification": {"classes": CLASSES},
        "anomaly": {},
    }
    model = backbones.build(
        name, task, input_len=length, channels=CHANNELS, size=size, **head[task]
    )
    model.prepare(torch.randn(64, length, CHANNELS))
    return model


def loss_function(model: Backbone) -> Callable[[Tensor], Tensor]:
    if isinstance(model, DetectorNetwork):
        return model.training_loss
    if isinstance(model, backbones.ForecastNetwork):
        target = torch.randn(BATCH, HORIZON, CHANNELS)
        return lambda x: F.l1_loss(model(x), target)
    labels = torch.arange(BATCH) % CLASSES
    return lambda x: F.cross_entropy(model(x), labels)


def training_step(model: Backbone, x: Tensor) -> Callable[[], object]:
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    loss = loss_function(model)

    def step() -> None:
        optimizer.zero_grad()
        (loss(x) + model.auxiliary_loss()).backward()
        optimizer.step()

    return step


def bench(name: str, task: TaskName, *, size: Size) -> None:
    length = 100 if task == "anomaly" else 96
    x = torch.randn(BATCH, length, CHANNELS)
    raw = build(name, task, size=size, length=length)
    attached = copy.deepcopy(raw)
    sites = len(sacm.attach(attached, channels=CHANNELS, example_inputs=x).sites)
    steps = {"raw": training_step(raw, x), "sacm": training_step(attached, x)}
    (first,) = interleave({"raw": steps["raw"]}, rounds=1, warmup=1)["raw"]
    rounds = ROUNDS if first < SLOW_STEP else FEW_ROUNDS
    seconds = interleave(steps, rounds=rounds, warmup=2)
    found = ratio(seconds["sacm"], seconds["raw"])
    aim = LIVE_AIM if sites >= 4 else OTHER_AIM
    milliseconds = [1e3 * statistics.median(seconds[kind]) for kind in ("raw", "sacm")]
    verdict = "" if found.median <= aim else f"   above the aim of {aim:.2f}"
    print(
        f"  {name:17}{task:15}{size:6}{sites:3} sites"
        f" {milliseconds[0]:8.1f} ms {milliseconds[1]:8.1f} ms   {found}{verdict}",
        flush=True,
    )


def main(size: Size = "paper", only: Sequence[str] = ()) -> None:
    print(
        f"training step, batch {BATCH}, C {CHANNELS}, L 96 (anomaly 100), "
        f"{torch.get_num_threads()} threads: raw, +SACM, +SACM relative to raw [quartiles]"
    )
    wanted = [name.lower() for name in only]
    for task in get_args(TaskName):
        for name in backbones.names(task):
            if not wanted or name.lower() in wanted:
                bench(name, task, size="small" if name in TOO_SLOW else size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=get_args(Size), default="paper")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    arguments = parser.parse_args()
    main(arguments.size, arguments.only)
