"""Forecasting, classification and anomaly detection: what a batch means, loss, selection, test."""

from __future__ import annotations

from typing import Any

from sacm.backbones.registry import entry
from sacm.data.corrupt import Contamination
from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings, RunSettings
from sacm.strategies.registry import canonical
from sacm.tasks.anomaly import Anomaly
from sacm.tasks.base import Result, Task
from sacm.tasks.classification import Classification
from sacm.tasks.forecasting import Forecasting
from sacm.types import TaskName

TASKS: dict[str, Task[Any]] = {
    task.name: task for task in (Forecasting(), Classification(), Anomaly())
}

__all__ = [
    "TASKS",
    "ResolvedSettings",
    "Result",
    "RunSettings",
    "Task",
    "TaskName",
    "get_task",
    "make_settings",
]


def get_task(name: str) -> Task[Any]:
    """A task by its name."""
    if name not in TASKS:
        raise ArgumentError(f"unknown task {name!r}: choose one of {', '.join(TASKS)}.")
    return TASKS[name]


def make_settings(**values: Any) -> RunSettings:
    """Make settings from plain values and check them against their task.

    Args:
        values: Fields of `RunSettings`; `task` and `data` must be there.

    Returns:
        The settings, with the backbone and the strategy in their usual spelling.

    Raises:
        ArgumentError: A value cannot be used; the sentence says which, and what to do.

    Example:
        >>> make_settings(task="anomaly", data="MSL").backbone
        'TranAD'
    """
    task = get_task(str(values.get("task")))
    settings = RunSettings.read(values)
    task.check(settings)
    names = {
        "backbone": entry(settings.backbone or task.default_backbone, task.name).name,
        "strategy": canonical(settings.strategy or task.default_strategy),
    }
    if settings.contamination:
        names["contamination"] = str(Contamination.parse(settings.contamination))
    return settings.model_copy(update=names)
