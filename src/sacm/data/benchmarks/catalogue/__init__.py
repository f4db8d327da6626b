"""The 45 public data sets: what they are, where they come from, what to beware of."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import get_args

from sacm.data.benchmarks.catalogue.anomaly import ANOMALY
from sacm.data.benchmarks.catalogue.classification import CLASSIFICATION
from sacm.data.benchmarks.catalogue.entry import (
    AnomalyEntry,
    ClassificationEntry,
    DatasetEntry,
    ForecastingEntry,
    RemoteFile,
)
from sacm.data.benchmarks.catalogue.forecasting import FORECASTING
from sacm.errors import ArgumentError
from sacm.types import TaskName

__all__ = [
    "AnomalyEntry",
    "ClassificationEntry",
    "DatasetEntry",
    "ForecastingEntry",
    "RemoteFile",
    "entries",
    "find_entry",
    "names",
]

TASKS: tuple[TaskName, ...] = get_args(TaskName)


def entries(task: str | None = None) -> tuple[DatasetEntry, ...]:
    """All entries, or those of one task."""
    if task is not None and task not in TASKS:
        raise ArgumentError(f"unknown task {task!r}: choose one of {', '.join(TASKS)}.")
    every: tuple[DatasetEntry, ...] = (*FORECASTING, *CLASSIFICATION, *ANOMALY)
    return tuple(entry for entry in every if task in (None, entry.task))


def names(task: str | None = None) -> list[str]:
    """Names of the data sets, or of those of one task."""
    return [entry.name for entry in entries(task)]


def find_entry(name: str) -> DatasetEntry:
    """The entry called `name`, in any letter case and spelling of blanks and dashes."""
    entry = spellings().get(simplify_name(name))
    if entry is None:
        near = get_close_matches(simplify_name(name), spellings(), n=1)
        hint = f"did you mean {spellings()[near[0]].name}?" if near else "see sacm data list."
        raise ArgumentError(f"There is no data set {name!r}: {hint}")
    return entry


@cache
def spellings() -> dict[str, DatasetEntry]:
    """Entries by every name they go by."""
    return {
        simplify_name(name): entry for entry in entries() for name in (entry.name, *entry.aliases)
    }


def simplify_name(name: str) -> str:
    """`name` in lower case without blanks, dashes and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
