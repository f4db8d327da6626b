"""Data sets by name: from SACM_DATA, from the cache, or from the network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sacm.data.benchmarks.cache import cache_folder, data_folder, is_folder
from sacm.data.benchmarks.catalogue import (
    CatalogueEntry,
    DatasetEntry,
    LoaderEntry,
    find_entry,
)
from sacm.data.benchmarks.catalogue import entries as all_entries
from sacm.data.benchmarks.fetch import fetch
from sacm.data.benchmarks.from_arrays import Ratios, build_dataset
from sacm.data.benchmarks.sources import FoundData, locate, read_compact
from sacm.data.covariates import ROLES, CovariatePlan, move_channels
from sacm.data.datasets import DATA_TYPES, AnomalyData, AnyData, ForecastingData
from sacm.data.own.read import READERS
from sacm.data.splits import split_by_ratio
from sacm.data.synthetic.plant import NAME as PLANT
from sacm.data.synthetic.plant import plant
from sacm.data.synthetic.synth12 import NAME, synth12
from sacm.data.tables.source import STDIN
from sacm.errors import ArgumentError, DataError
from sacm.types import TaskName


class Presence(NamedTuple):
    """Where a data set was found; both None if it was not, or if its plug-in makes it."""

    entry: CatalogueEntry
    place: str | None
    found: FoundData | None

    @property
    def present(self) -> bool:
        """Whether it can be loaded without a download."""
        return self.found is not None or isinstance(self.entry, LoaderEntry)


def load(
    name: str,
    *,
    folder: str | Path | None = None,
    download: bool = True,
    mask_faults: bool = False,
    progress: bool = True,
    ratios: Ratios | None = None,
) -> AnyData:
    """Load a data set by its name.

    Looks in the folder named by SACM_DATA, then in the user's cache, then downloads.

    Args:
        name: A name from `names()` in any letter case; "SMD@machine-1-1" is one machine of SMD;
            "Synth-12" ("Synth-12@0.3" sets its noise level) and "Plant" are generated. A data set
            that a plug-in registered comes from the function it registered, whatever the other
            arguments.
        folder: The only folder to look in.
        download: Whether it may be downloaded.
        mask_faults: Treat Weather's -9999 codes as missing.
        progress: Whether a download shows a bar.
        ratios: Shares of training, validation and test rows of a series, instead of the
            benchmark's own split; every row counts, also those that the benchmark leaves out.

    Returns:
        A `ForecastingData`, `ClassificationData` or `AnomalyData`.

    Raises:
        ArgumentError: There is no data set of that name.
        DataError: It is not there, or damaged.

    Example:
        >>> load("Synth-12@0.1").values.shape
        (33600, 1)
    """
    generated = synthetic(name)
    if generated is not None:
        return split_anew(generated, ratios)
    whole, _, part = name.partition("@")
    if part:
        options: dict[str, Any] = {"folder": folder, "download": download, "progress": progress}
        data = load(whole, **options)
        if not isinstance(data, AnomalyData):
            raise ArgumentError(f"{data.name} has no parts: name it without @{part}.")
        return data.only(part)
    entry = find_entry(name)
    if isinstance(entry, LoaderEntry):
        return split_anew(load_registered(entry), ratios)
    assert isinstance(entry, DatasetEntry)
    place = presence(entry, folder)
    if place.found is not None:
        layout, path = place.found
        arrays = layout.read(path, entry)
        return build_dataset(entry, arrays, mask_faults=mask_faults, ratios=ratios)
    if folder is not None or not download:
        where = folder or data_folder() or cache_folder()
        raise DataError(f"{entry.name} is not in {where}: it should hold {entry.files[0].path}.")
    archive = fetch(entry, progress=progress)
    arrays = read_compact(archive, entry)
    return build_dataset(entry, arrays, mask_faults=mask_faults, ratios=ratios)


def load_registered(entry: LoaderEntry) -> AnyData:
    """Call the function of a registered data set and check what it gives."""
    data = entry.loader()
    wanted = DATA_TYPES[entry.task]
    if not isinstance(data, wanted):
        raise DataError(
            f"the loader of {entry.name} must return {wanted.__name__}, got {type(data).__name__}."
        )
    return replace(data, name=entry.name)


def presence(entry: CatalogueEntry, folder: str | Path | None = None) -> Presence:
    """Where `entry` is on this machine."""
    if not isinstance(entry, DatasetEntry):
        return Presence(entry, "plug-in", None)
    if folder is not None:
        if not is_folder(Path(folder)):
            raise DataError(f"{folder} is not a folder.")
        places: list[tuple[str, Path | None]] = [(str(folder), Path(folder))]
    else:
        places = [("SACM_DATA", data_folder()), ("cache", cache_folder())]
    for label, place in places:
        if place is not None and is_folder(place):
            found = locate(place, entry)
            if found is not None:
                return Presence(entry, label, found)
    return Presence(entry, None, None)


def inventory(task: str | None = None) -> list[Presence]:
    """Every data set of the catalogue, with where it is."""
    return [presence(entry) for entry in all_entries(task)]


def synthetic(name: str) -> ForecastingData | None:
    """Synth-12 or the simulated plant, if `name` asks for one of them."""
    if not is_synthetic(name):
        return None
    if name.lower() == PLANT.lower():
        return plant()
    level = name.partition("@")[2]
    try:
        return synth12(float(level) if level else 0.5)
    except ValueError as error:
        raise ArgumentError(
            f"The noise level in {name!r} must be a number of at least 0."
        ) from error


def is_synthetic(name: str) -> bool:
    """Whether `name` is that of the plant, or of Synth-12 with or without a noise level."""
    return name.lower() == PLANT.lower() or name.partition("@")[0].lower().replace(
        "-", ""
    ) == NAME.lower().replace("-", "")


def names_file(source: str | Path) -> bool:
    """Whether `source` means a file rather than a data set by its name.

    Raises:
        ArgumentError: The name is empty, or an address of the web.
    """
    if not str(source):
        raise ArgumentError("the name of the data is empty: name a file or a data set.")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:/+", str(source)):
        raise ArgumentError(f"{source} is an address: download the file and name it.")
    path = Path(source)
    if is_synthetic(str(source)):
        return False
    if str(source) == STDIN or path.suffix or len(path.parts) > 1:
        return True
    try:
        return path.exists()
    except OSError:  # a name that is too long for any file
        return True


def split_anew(data: AnyData, ratios: Ratios | None) -> AnyData:
    """A series with its rows in other shares; without `ratios` the data as they are.

    Raises:
        ArgumentError: The data are no single series.
    """
    if ratios is None:
        return data
    if not isinstance(data, ForecastingData) or len(data.segments) > 1:
        raise ArgumentError(f"{data.name} is no single series: it cannot be split anew.")
    return replace(data, splits=split_by_ratio(len(data.values), ratios))


def resolve(
    source: str | Path, *, task: TaskName, reading: Mapping[str, Any] | None = None
) -> AnyData:
    """Find a data set by name, or read a user's own file, for a task.

    Args:
        source: A name of the catalogue, a file, a folder of files, or "-" for standard input.
        task: What the data are for.
        reading: Options for reading a file by their names on the command line, as
            `RunSettings.reading()` gives them. Of the catalogue only series take some: `split`,
            which divides all their rows anew, and the columns that are covariates.

    Returns:
        The data set of the task.

    Raises:
        ArgumentError: There is no such data set, it is of another task, or an option is of no use.
        DataError: It cannot be read.
    """
    options = dict(reading or {})
    if (task != "forecasting" or not names_file(source)) and options.get("scaling") == "shared":
        del options["scaling"]  # as all such data are scaled
    if names_file(source):
        return READERS[task](source, options)
    plan = CovariatePlan.of({role: options.pop(role, ()) for role in ROLES})
    ratios = options.pop("split", None)
    refuse_options(str(source), options)
    data = load(str(source), ratios=ratios)
    if data.task != task:
        raise ArgumentError(f"{data.name} is a data set for {data.task}, not for {task}.")
    if plan and isinstance(data, ForecastingData):
        return move_channels(data, plan)
    return data


def refuse_options(name: str, reading: Mapping[str, Any] | None) -> None:
    """Refuse options for reading where a data set of the catalogue is named."""
    if reading:
        raise ArgumentError(
            f"{', '.join(reading)}: {name} is a data set of the catalogue, which is read in one "
            "way only; these options are for files of your own."
        )
