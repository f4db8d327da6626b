"""Tables from files: delimiter found, damage named by line."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = ",;\t|"
DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")
MISSING_WORDS = ["?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", ""]


def read_table(path: Path) -> pd.DataFrame:
    """A CSV (also `.txt`, `.tsv`, gzipped) or Parquet file."""
    check_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return read_parquet(path)
    return read_csv(path)


def check_file(path: Path) -> None:
    """Refuse what is not a readable, non-empty file."""
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file."""
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except Exception as error:  # pyarrow lets through whatever a damaged file makes it stumble on
        raise DataError(f"{path} is not a readable Parquet file.") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: permission denied.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file: fetch it again.") from error


def read_csv(path: Path) -> pd.DataFrame:
    """Delimited text with or without a header line.

    Columns of a file without one are called "0", "1", … Lines with more or fewer fields than the
    first are an error: a file cut off half-way looks just like that.
    """
    import pandas as pd

    content = read_bytes(path)
    if b"\0" in content[:4096]:
        raise DataError(f"{path} is not a text file.")
    text_start = content.lstrip()[:65_536].decode("utf-8-sig", errors="replace")
    if not text_start:
        raise DataError(f"{path} is empty.")
    first_line = text_start.splitlines()[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    names = next(csv.reader([first_line], delimiter=delimiter))
    check_fields(content, delimiter, len(names), path)
    header = is_header(names)
    if header:
        check_names(names, path)
    options: dict[str, Any] = {
        "sep": delimiter,
        "header": 0 if header else None,
        "skipinitialspace": True,
        "na_values": MISSING_WORDS,
        "keep_default_na": False,
        "low_memory": False,
        "encoding": encoding_of(content),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame: pd.DataFrame = pd.read_csv(io.BytesIO(content), **options)
    except ValueError as error:  # pandas' own errors are among these
        raise DataError(f"{path} cannot be read as a table: {first_line_of(error)}.") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    if not len(frame):
        raise DataError(f"{path} has a header line but no rows.")
    return frame


def first_line_of(error: Exception) -> str:
    """The first line of a message, without its full stop."""
    return (str(error).splitlines() or ["unknown reason"])[0].rstrip(". ")


def encoding_of(content: bytes) -> str:
    """UTF-8 where it is that, otherwise Latin-1, which reads anything."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def is_header(names: list[str]) -> bool:
    """Whether the first line names the columns, rather than being the first row."""
    # Frames made from arrays number their columns.
    if len(names) > 1 and [name.strip() for name in names] == [str(i) for i in range(len(names))]:
        return True
    return not all(is_number(name) or DATE.match(name) for name in names)


def is_number(text: str) -> bool:
    """Whether `text` is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_names(names: list[str], path: Path) -> None:
    """Refuse a header that uses a name twice."""
    seen: set[str] = set()
    for name in names:
        if name.strip() in seen:
            raise DataError(f"{path}: two columns are called {name.strip()!r}: rename one.")
        seen.add(name.strip())


def check_fields(content: bytes, delimiter: str, expected: int, path: Path) -> None:
    """Refuse lines with another number of fields than the first."""
    counts = quoted_counts(content, delimiter) if b'"' in content else counts_of(content, delimiter)
    wrong = np.flatnonzero((counts != expected) & (counts > 0))
    if len(wrong):
        line = int(wrong[0])
        raise DataError(
            f"{path}: line {line + 1} has {counts[line]} fields where the first line has "
            f"{expected}: the file may be cut off there, or its delimiter is not {delimiter!r}."
        )


def counts_of(content: bytes, delimiter: str) -> np.ndarray:
    """Fields in each line of text without quotes; 0 for a blank line."""
    letters = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    begins = np.append(0, ends[:-1] + 1)
    marks = np.flatnonzero(letters == ord(delimiter))
    found = np.searchsorted(marks, ends) - np.searchsorted(marks, begins)
    lengths = ends - begins
    # A Windows line end leaves one character on a blank line.
    blank = (lengths == 0) | (
        (lengths == 1) & (letters[np.minimum(begins, len(letters) - 1)] == 13)
    )
    return np.where(blank, 0, found + 1)


def quoted_counts(content: bytes, delimiter: str) -> np.ndarray:
    """Fields in each record of text with quotes."""
    text = io.StringIO(content.decode(encoding_of(content)), newline="")
    return np.array([len(fields) for fields in csv.reader(text, delimiter=delimiter)])


def looks_like_decimal_comma(text: str) -> bool:
    """Whether `text` is a number written with a decimal comma."""
    return re.fullmatch(r"\s*[-+]?\d+,\d+\s*", text) is not None
