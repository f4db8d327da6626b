"""Every registered network as a test case."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor

from sacm import backbones
from sacm.backbones.registry import BackboneEntry as Case
from sacm.backbones.registry import entry
from sacm.testing.backbones import make, training_loss, windows
from sacm.types import TaskName

__all__ = [
    "Case",
    "assert_close",
    "cases",
    "every_case",
    "every_detector",
    "every_forecaster",
    "in_daily_work",
    "make",
    "training_loss",
    "windows",
]


def cases(task: TaskName | None = None) -> list[Case]:
    """The networks of this package; a test may have registered others."""
    tasks = get_args(TaskName) if task is None else (task,)
    entries = [entry(name, each) for each in tasks for name in backbones.names(each)]
    return [each for each in entries if each.model.__module__.startswith("sacm.")]


# One network a task is checked in daily work, the others when everything is.
DAILY = ("PatchTST-forecasting", "InceptionTime-classification", "TranAD-anomaly")


def in_daily_work(case: Case) -> tuple[pytest.MarkDecorator, ...]:
    """No mark for the networks of daily work, `slow` for the others."""
    return () if str(case) in DAILY else (pytest.mark.slow,)


every_case = pytest.mark.parametrize("case", cases(), ids=str)
every_forecaster = pytest.mark.parametrize("case", cases("forecasting"), ids=str)
every_detector = pytest.mark.parametrize("case", cases("anomaly"), ids=str)


def assert_close(found: list[Tensor], expected: list[Tensor], *, tolerance: float) -> None:
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)
