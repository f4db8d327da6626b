"""ETT, Weather, Electricity, Exchange Rate and ILI: one table with a row for each time step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sacm.data.benchmarks.catalogue import ForecastingEntry
from sacm.data.benchmarks.sources.archive import Arrays
from sacm.data.benchmarks.sources.search import first_file
from sacm.data.tables.columns import matrix
from sacm.data.tables.csv_file import read_table
from sacm.data.tables.dates import read_times
from sacm.data.tables.time_column import time_column

# Older text files of the same series; that of Exchange Rate has its last two columns swapped.
TEXT_ENDINGS = (".txt", ".txt.gz")


def find_table(folder: Path, entry: ForecastingEntry) -> Path | None:
    """The benchmark's CSV, or the text file that it was made from."""
    stem = entry.file_stem
    inside = entry.files[0].path
    low = stem.lower()
    names = [inside, f"{stem}.csv", f"{low}.csv", f"{low}/{low}.csv", f"{stem}.csv.gz"]
    names += [f"{part}{low}{ending}" for ending in TEXT_ENDINGS for part in ("", f"{low}/")]
    return first_file(folder, entry, names)


def read_series_table(path: Path, entry: ForecastingEntry) -> Arrays:
    """Values, column names and timestamps of one of the tables."""
    table = read_table(path)
    where = str(path)
    dated = time_column(table)
    arrays: Arrays = {}
    if dated is not None:
        times = read_times(table[dated], where)
        if times.stamps is not None:
            arrays["timestamps"] = times.stamps
        table = table.drop(columns=dated)
    values = matrix(table, where)
    if entry.name == "Exchange Rate" and path.name.endswith(TEXT_ENDINGS):
        values = np.ascontiguousarray(values[:, [*range(values.shape[1] - 2), -1, -2]])
    named = len(entry.columns) == values.shape[1]
    arrays["values"] = values
    arrays["columns"] = np.array(entry.columns if named else [str(c) for c in table.columns])
    return arrays
