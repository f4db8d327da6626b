"""The paper's nine real forecasting sets, as far as they are on this machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.data.datasets import ForecastingData
from sacm.data.load import find, load
from sacm.errors import DataError
from sacm_lab.datasets import FORECASTING


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
    here = [name for name in FORECASTING if find(name).present]
    absent = tuple(name for name in FORECASTING if name not in here)
    if len(here) < least:
        raise DataError(
            f"{len(here)} of the {len(FORECASTING)} real forecasting sets are on this machine "
            f"and the figure needs {least}: set SACM_DATA, or run `sacm data get {absent[0]}`."
        )
    values, columns = {}, {}
    for name in here:
        data = load(name, download=False)
        assert isinstance(data, ForecastingData)
        values[name] = np.asarray(data.values, dtype=np.float64)
        columns[name] = tuple(map(str, data.columns))
    return RealSeries(values, columns, absent)
