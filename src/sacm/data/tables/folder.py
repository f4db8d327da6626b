"""A folder of files, each of them one series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sacm.data.tables.csv_file import read_table
from sacm.data.tables.number_text import Decimal
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

FILE_COLUMN = "file"
ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet")


def read_folder(folder: Path, decimal: Decimal | None = None) -> pd.DataFrame:
    """Read the tables of a folder, one below the other.

    Args:
        folder: Holds CSV (also gzipped) or Parquet files with the same columns.
        decimal: As for `read_table`.

    Returns:
        All rows, with the name of their file in the column "file".

    Raises:
        DataError: There are no such files, or their columns differ.
    """
    import pandas as pd

    names = sorted(path for path in folder.iterdir() if path.name.lower().endswith(ENDINGS))
    files = [path for path in names if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise DataError(f"{folder} is a folder: name a file, or a folder of CSV files.")
    parts: list[pd.DataFrame] = []
    for path in files:
        part = read_table(path, decimal)
        wanted = parts[0].columns[1:].tolist() if parts else part.columns.tolist()
        if sorted(part.columns) != sorted(wanted):
            raise DataError(
                f"{folder} is a folder of files with different columns: {path.name} has "
                f"{', '.join(part.columns[:8])}, {files[0].name} has {', '.join(wanted[:8])}."
            )
        if FILE_COLUMN in part.columns:
            raise DataError(f"{path} has a column {FILE_COLUMN!r}: rename it.")
        stem = next(path.name[: -len(end)] for end in ENDINGS if path.name.lower().endswith(end))
        part.insert(0, FILE_COLUMN, stem)
        parts.append(part if not len(parts) else part[parts[0].columns])
    return pd.concat(parts, ignore_index=True)
