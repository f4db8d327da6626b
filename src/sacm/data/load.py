"""Data by name or from a file: registered data sets, generated ones, and the user's own files."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from sacm import registry
from sacm.data.datasets import DATA_TYPES, AnomalyData, AnyData, ForecastingData, split_by_ratio
from sacm.errors import ArgumentError, DataError, did_you_mean
from sacm.registry import GENERATED, Registry
from sacm.types import TaskName

SYNTH12 = "Synth-12"
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
Ratios = tuple[float, ...]
LoaderFunction = TypeVar("LoaderFunction", bound=Callable[[], AnyData])


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set that can be loaded by its name; a subclass may override `load`."""

    name: str
    task: TaskName
    loader: Callable[[], AnyData] | None = None
    facts: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    input_len: int = 96

    @property
    def present(self) -> bool:
        """Whether it can be loaded without a download."""
        return True

    def load(
        self,
        *,
        folder: str | Path | None = None,
        download: bool = True,
        progress: bool = True,
        ratios: Ratios | None = None,
    ) -> AnyData:
        """Load the data; the arguments are those of `sacm.data.load`."""
        assert self.loader is not None
        data, expected = self.loader(), DATA_TYPES[self.task]
        if not isinstance(data, expected):
            said = f"must return {expected.__name__}, got {type(data).__name__}"
            raise DataError(f"the loader of {self.name} {said}.")
        return split_anew(replace(data, name=self.name), ratios)


DATASETS: Registry[Dataset] = registry.DATASETS


def register(
    name: str, *, task: TaskName, aliases: tuple[str, ...] = ()
) -> Callable[[LoaderFunction], LoaderFunction]:
    """Make the data set that a function returns loadable by name, also for `--data`.

    The function takes no arguments and returns the data class of the task ("forecasting",
    "classification" or "anomaly"), the same numbers each time. `sacm data info` shows the first
    line of its docstring.

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
        if is_synthetic(each) or not all(letter.isalnum() or letter in " -_" for letter in each):
            said = "use letters, digits, blanks, dashes and underscores, and no name of a built-in"
            raise ArgumentError(f"a data set cannot be named {each!r}: {said} set.")

    def add(loader: LoaderFunction) -> LoaderFunction:
        facts = tuple((inspect.getdoc(loader) or "").splitlines()[:1])
        dataset = Dataset(name=name, task=task, loader=loader, facts=facts)
        DATASETS.register(name, aliases=aliases, origin=loader, group=task)(dataset)
        return loader

    return add


def names(task: str | None = None) -> list[str]:
    """List the names of the registered data sets, or of those of one task."""
    if task is not None:
        _check_task(task)
    return [name for each in TASK_NAMES if task in (None, each) for name in DATASETS.names(each)]


def find(name: str) -> Dataset:
    """Find a registered data set, in any letter case; an error suggests the nearest name."""
    dataset = DATASETS.find(name)
    if dataset is None:
        nearest = did_you_mean(name, names()).strip() or "`sacm data list` lists all names."
        raise ArgumentError(f"there is no file and no data set {name!r}. {nearest}")
    return dataset


def published(name: str) -> Dataset | None:
    """Give the registered data set of exactly this name, if results on it are published."""
    dataset = DATASETS.find(name)
    return dataset if dataset and dataset.name == name and dataset.horizons else None


def load(
    name: str,
    *,
    folder: str | Path | None = None,
    download: bool = True,
    progress: bool = True,
    ratios: Ratios | None = None,
) -> AnyData:
    """Load a data set by its name: from the folder in SACM_DATA, the user's cache, or its address.

    Args:
        name: A name from `names()` in any letter case; "SMD@machine-1-1" is one machine of SMD;
            "Synth-12" is generated ("Synth-12@0.3" sets its noise level).
        folder: The only folder to look in.
        download: Whether it may be downloaded.
        progress: Whether a download shows a bar.
        ratios: Shares of training, validation and test rows, instead of the benchmark's own.

    Example:
        >>> load("Synth-12@0.1").values.shape
        (33600, 1)
    """
    whole, _, segment = name.partition("@")
    if is_synthetic(name):
        try:
            generated = synth12(float(segment or 0.5))
        except ValueError as error:
            said = f"The noise level in {name!r} must be a number of at least 0."
            raise ArgumentError(said) from error
        return split_anew(generated, ratios)
    if segment:
        data = load(whole, folder=folder, download=download, progress=progress)
        if not isinstance(data, AnomalyData):
            raise ArgumentError(f"{data.name} has no parts: name it without @{segment}.")
        return data.only(segment)
    return find(name).load(folder=folder, download=download, progress=progress, ratios=ratios)


def synth12(sigma: float = 0.5, channels: int = 1) -> ForecastingData:
    """Generate Synth-12: noisy inputs `.values` and clean targets `.clean`, both `[33600, C]`.

    `sigma` is the corruption level: 0.1 to 0.9 in the benchmark, 0 for the clean series. Each
    channel has its own signal and noise.

    Example:
        >>> synth12(0.5).clean.shape
        (33600, 1)
    """
    if not 0 <= sigma < math.inf or channels < 1:
        raise ArgumentError(
            f"sigma must be at least 0 and channels at least 1, got {sigma} and {channels}."
        )
    data: ForecastingData = GENERATED.get(SYNTH12)(sigma, channels)
    return data


def is_synthetic(name: str) -> bool:
    """Whether `name` is that of Synth-12, with or without a noise level."""
    letters = registry.letters_and_digits
    return letters(name.partition("@")[0]) == letters(SYNTH12)


def split_anew(data: AnyData, ratios: Ratios | None) -> AnyData:
    """The same series with its rows split in other shares; without `ratios` unchanged."""
    if ratios is None:
        return data
    if not isinstance(data, ForecastingData) or len(data.segments) > 1:
        raise ArgumentError(f"{data.name} is no single series: it cannot be split anew.")
    return replace(data, splits=split_by_ratio(len(data.values), ratios))


def names_file(source: str | Path) -> bool:
    """Whether `source` means a file rather than a data set by its name."""
    if not str(source):
        raise ArgumentError("the name of the data is empty: name a file or a data set.")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:/+", str(source)):
        raise ArgumentError(f"{source} is an address: download the file and name it.")
    path = Path(source)
    named = bool(path.suffix) or len(path.parts) > 1 or os.path.exists(source)
    return named and not is_synthetic(str(source))


def read_bytes(path: Path) -> bytes:
    """The content of a file; refuse what is not a readable, non-empty file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        reason = str(error.strerror).lower()
        said = "is a folder: name a file" if path.is_dir() else f"cannot be read: {reason}"
        raise DataError(f"{path} {said}.") from error
    if not content:
        raise DataError(f"{path} is empty.")
    return content


def resolve(
    source: str | Path, *, task: TaskName, reading: Mapping[str, Any] | None = None
) -> AnyData:
    """Find a data set by name, or read a user's own file, for a task.

    `reading` holds options for a file; of named data sets only series take one, `split`.
    """
    options, own = dict(reading or {}), names_file(source)
    if (task != "forecasting" or not own) and options.get("scaling") == "shared":
        del options["scaling"]  # as all such data are scaled
    if own:  # pandas is loaded only here
        from sacm.data import anomaly_data, classification_data, forecasting_data

        if task == "forecasting":
            return forecasting_data(source, **options)
        if task == "anomaly":
            return anomaly_data(source, **options)
        return classification_data(Path(source), **options)
    ratios = options.pop("split", None)
    refuse_options(str(source), options)
    data = load(str(source), ratios=ratios)
    if data.task != task:
        raise ArgumentError(f"{data.name} is a data set for {data.task}, not for {task}.")
    return data


def refuse_options(name: str, reading: Mapping[str, Any] | None) -> None:
    """Refuse options for reading where a data set is named."""
    if reading:
        said = "is a data set with a name, which is read in one way only"
        raise ArgumentError(f"{', '.join(reading)}: {name} {said}; options are for your own files.")


def _check_task(task: str) -> None:
    if task not in TASK_NAMES:
        raise ArgumentError(f"unknown task {task!r}: choose one of {', '.join(TASK_NAMES)}.")
