"""Data sets by name: from SACM_DATA, from the cache, or from the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

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
from sacm.data.benchmarks.sources import Found, locate, read_compact
from sacm.data.datasets import DATASETS, AnyData, ForecastingData
from sacm.data.own.cases import classification_data
from sacm.data.own.series import forecasting_data
from sacm.data.own.telemetry import anomaly_data
from sacm.data.splits import read_ratios, split_by_ratio
from sacm.data.synthetic.plant import NAME as PLANT
from sacm.data.synthetic.plant import plant
from sacm.data.synthetic.synth12 import NAME, synth12
from sacm.errors import ArgumentError, DataError
from sacm.types import TaskName

READERS: dict[TaskName, Callable[[Path], AnyData]] = {
    "forecasting": forecasting_data,
    "classification": classification_data,
    "anomaly": anomaly_data,
}


class Presence(NamedTuple):
    """Where a data set was found; both None if it was not, or if its plug-in makes it."""

    entry: CatalogueEntry
    place: str | None
    found: Found | None

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
        name: A name from `names()` in any letter case; "Synth-12" ("Synth-12@0.3" sets its noise
            level) and "Plant" are generated. A data set that a plug-in registered comes from the
            function it registered, whatever the other arguments.
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
    wanted = DATASETS[entry.task]
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
    """Whether `source` means a file rather than a data set by its name."""
    path = Path(source)
    return not is_synthetic(str(source)) and (
        path.exists() or bool(path.suffix) or len(path.parts) > 1
    )


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


def resolve(source: str | Path, *, task: TaskName, split: str = "") -> AnyData:
    """A data set by name, or a user's own file, for `task`; `split` such as 0.6/0.2/0.2."""
    ratios = read_ratios(split) if split else None
    if names_file(source):
        if ratios is not None and task == "forecasting":
            return forecasting_data(Path(source), ratios=ratios)
        return READERS[task](Path(source))
    data = load(str(source), ratios=ratios)
    if data.task != task:
        raise ArgumentError(f"{data.name} is a data set for {data.task}, not for {task}.")
    return data
