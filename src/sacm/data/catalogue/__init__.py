"""The 45 public data sets: what they are, where they come from, what to beware of."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import get_args

from sacm.data.catalogue.anomaly import ANOMALY
from sacm.data.catalogue.classification import CLASSIFICATION
from sacm.data.catalogue.entry import (
    AnomalyEntry,
    ClassificationEntry,
    Entry,
    ForecastingEntry,
    RemoteFile,
)
from sacm.data.catalogue.forecasting import FORECASTING
from sacm.errors import ArgumentError
from sacm.task_name import TaskName

__all__ = [
    "AnomalyEntry",
    "ClassificationEntry",
    "Entry",
    "ForecastingEntry",
    "RemoteFile",
    "entries",
    "find_entry",
    "names",
]

TASKS: tuple[TaskName, ...] = get_args(TaskName)


def entries(task: str | None = None) -> tuple[Entry, ...]:
    """All entries, or those of one task."""
    if task is not None and task not in TASKS:
        raise ArgumentError(f"unknown task {task!r}: choose one of {', '.join(TASKS)}.")
    every: tuple[Entry, ...] = (*FORECASTING, *CLASSIFICATION, *ANOMALY)
    return tuple(entry for entry in every if task in (None, entry.task))


def names(task: str | None = None) -> list[str]:
    """Names of the data sets, or of those of one task."""
    return [entry.name for entry in entries(task)]


def find_entry(name: str) -> Entry:
    """The entry called `name`, in any letter case and spelling of blanks and dashes."""
    entry = spellings().get(plain(name))
    if entry is None:
        near = get_close_matches(plain(name), spellings(), n=1)
        hint = f"did you mean {spellings()[near[0]].name}?" if near else "see sacm data list."
        raise ArgumentError(f"There is no data set {name!r}: {hint}")
    return entry


@cache
def spellings() -> dict[str, Entry]:
    """Entries by every name they go by."""
    return {plain(name): entry for entry in entries() for name in (entry.name, *entry.aliases)}


def plain(name: str) -> str:
    """`name` in lower case without blanks, dashes and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
