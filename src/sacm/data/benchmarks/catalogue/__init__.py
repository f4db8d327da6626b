"""Data sets by name: the 45 public ones, and those that plug-ins add."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar, get_args

from sacm.data.benchmarks.catalogue.anomaly import ANOMALY
from sacm.data.benchmarks.catalogue.classification import CLASSIFICATION
from sacm.data.benchmarks.catalogue.entry import (
    AnomalyEntry,
    CatalogueEntry,
    ClassificationEntry,
    DatasetEntry,
    ForecastingEntry,
    LoaderEntry,
    RemoteFile,
)
from sacm.data.benchmarks.catalogue.forecasting import FORECASTING
from sacm.data.benchmarks.catalogue.paper import (
    PAPER_ANOMALY,
    PAPER_CLASSIFICATION,
    PAPER_FORECASTING,
)
from sacm.data.datasets import AnyData
from sacm.data.synthetic.synth12 import NAME as SYNTH12
from sacm.errors import ArgumentError, did_you_mean
from sacm.registry import Registry
from sacm.types import TaskName

__all__ = [
    "PAPER_ANOMALY",
    "PAPER_CLASSIFICATION",
    "PAPER_FORECASTING",
    "AnomalyEntry",
    "CatalogueEntry",
    "ClassificationEntry",
    "DatasetEntry",
    "ForecastingEntry",
    "LoaderEntry",
    "RemoteFile",
    "entries",
    "find_entry",
    "names",
    "register",
]

TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
LoaderFunction = TypeVar("LoaderFunction", bound=Callable[[], AnyData])


def simplify_name(name: str) -> str:
    """Give `name` in lower case without blanks, dashes and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


DATASETS: Registry[CatalogueEntry] = Registry("data set", simplify=simplify_name)
for _entry in (*FORECASTING, *CLASSIFICATION, *ANOMALY):
    DATASETS.register(_entry.name, aliases=_entry.aliases)(_entry)


def register(
    name: str, *, task: TaskName, aliases: tuple[str, ...] = ()
) -> Callable[[LoaderFunction], LoaderFunction]:
    """Give a decorator that makes a data set loadable by name.

    Args:
        name: The name for `sacm.data.load` and `--data`: letters, digits, blanks, dashes and
            underscores.
        task: "forecasting", "classification" or "anomaly".
        aliases: Other names it goes by.

    Returns:
        A decorator for a function without arguments that returns the `ForecastingData`,
        `ClassificationData` or `AnomalyData` of the task; the data set gets the registered name.
        The function runs at each `load`; the same call must give the same numbers each time, or
        runs on it cannot be repeated. The first line of its docstring is shown by
        `sacm data info`.

    Raises:
        ArgumentError: If the task is unknown, or the name is taken or could mean a file.

    Example:
        >>> import numpy as np
        >>> import sacm
        >>> from sacm.registry import temporary_entries
        >>> with temporary_entries():
        ...     @sacm.data.register("Waves", task="forecasting")
        ...     def waves():
        ...         return sacm.data.forecasting_data(np.sin(np.arange(400.0) / 5))
        ...     sacm.data.load("waves").name
        'Waves'
    """
    _check_task(task)
    for each in (name, *aliases):
        if not all(letter.isalnum() or letter in " -_" for letter in each):
            raise ArgumentError(
                f"the name of a data set must not look like a file, got {each!r}: use letters, "
                "digits, blanks, dashes and underscores."
            )
        if simplify_name(each) == simplify_name(SYNTH12):
            raise ArgumentError(f"a data set named {SYNTH12!r} is already registered.")

    def add(loader: LoaderFunction) -> LoaderFunction:
        words = (inspect.getdoc(loader) or "").partition("\n")[0]
        entry = LoaderEntry(
            name=name, task=task, aliases=aliases, facts=(words,) if words else (), loader=loader
        )
        DATASETS.register(name, aliases=aliases, origin=loader)(entry)
        return loader

    return add


def entries(task: str | None = None) -> tuple[CatalogueEntry, ...]:
    """List all data sets, or those of one task."""
    if task is not None:
        _check_task(task)
    return tuple(entry for entry in DATASETS.values() if task in (None, entry.task))


def names(task: str | None = None) -> list[str]:
    """List the names of the data sets, or of those of one task."""
    return [entry.name for entry in entries(task)]


def find_entry(name: str) -> CatalogueEntry:
    """Find a data set in any letter case and spelling of blanks and dashes.

    Raises:
        ArgumentError: If there is none; the message suggests the nearest name.
    """
    entry = DATASETS.find(name)
    if entry is None:
        hint = did_you_mean(name, names()).strip()
        hint = hint.replace("Did", "did").replace("'", "") or "see sacm data list."
        raise ArgumentError(f"There is no data set {name!r}: {hint}")
    return entry


def _check_task(task: str) -> None:
    if task not in TASK_NAMES:
        raise ArgumentError(f"unknown task {task!r}: choose one of {', '.join(TASK_NAMES)}.")
