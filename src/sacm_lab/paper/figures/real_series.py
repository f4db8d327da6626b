"""The paper's nine real forecasting sets, as far as they are on this machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.data.benchmarks.catalogue import PAPER_FORECASTING
from sacm.data.benchmarks.load import inventory, load
from sacm.data.datasets import ForecastingData
from sacm.errors import DataError


@dataclass(frozen=True)
class RealSeries:
    """Values [T, C] of the sets that are here, and the names of those that are not."""

    values: dict[str, np.ndarray]
    columns: dict[str, tuple[str, ...]]
    absent: tuple[str, ...]

    @property
    def note(self) -> str:
        """A sentence on what is missing; empty if nothing is."""
        if not self.absent:
            return ""
        verb = "is" if len(self.absent) == 1 else "are"
        return f"{', '.join(self.absent)} {verb} not on this machine and left out."


def real_series(least: int = 1) -> RealSeries:
    """Read them, without downloading; `least` is the number that a figure needs."""
    places = [place for place in inventory("forecasting") if place.entry.name in PAPER_FORECASTING]
    absent = tuple(place.entry.name for place in places if place.found is None)
    here = [place.entry.name for place in places if place.found is not None]
    if len(here) < least:
        raise DataError(
            f"{len(here)} of the {len(places)} real forecasting sets are on this machine and the "
            f"figure needs {least}: set SACM_DATA, or run `sacm data get {absent[0]}`."
        )
    values, columns = {}, {}
    for name in here:
        data = load(name, download=False)
        assert isinstance(data, ForecastingData)
        values[name] = np.asarray(data.values, dtype=np.float64)
        columns[name] = tuple(map(str, data.columns))
    return RealSeries(values, columns, absent)
