"""Forecasting, classification and anomaly detection: what a batch means, loss, selection, test."""

from __future__ import annotations

from typing import Any

from sacm.errors import ArgumentError
from sacm.tasks.anomaly import Anomaly
from sacm.tasks.base import Result, Task
from sacm.tasks.classification import Classification
from sacm.tasks.forecasting import Forecasting
from sacm.tasks.settings import RunSettings, TaskName

TASKS: dict[str, Task[Any]] = {
    task.name: task for task in (Forecasting(), Classification(), Anomaly())
}

__all__ = ["TASKS", "Result", "RunSettings", "Task", "TaskName", "get_task"]


def get_task(name: str) -> Task[Any]:
    """A task by its name."""
    if name not in TASKS:
        raise ArgumentError(f"unknown task {name!r}: choose one of {', '.join(TASKS)}.")
    return TASKS[name]
