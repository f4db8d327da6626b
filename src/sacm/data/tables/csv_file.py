"""Tables from files: delimiter found, damage named by line."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib.util
import io
import re
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.tables.date_text import looks_dated
from sacm.data.tables.number_text import (
    POINT_ROWS,
    Decimal,
    convert_numbers,
    note_points,
    tidy_cells,
)
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = ",;\t|"
SAMPLE = 50  # lines to tell the delimiter from
DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")
MISSING_WORDS = ["?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", ""]


def read_table(path: Path, decimal: Decimal | None = None) -> pd.DataFrame:
    """A CSV (also `.txt`, `.tsv`, gzipped or zipped), Excel or Parquet file.

    `decimal` is what numbers in text have before their fraction; the other sign then separates
    thousands. Default: a point, and no thousands.
    """
    check_csv_file(path)
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        return read_parquet(path)
    if kind in (".xlsx", ".xlsm"):
        return read_excel(path)
    return parse_table(read_bytes(path), path, decimal)


def parse_table(content: bytes, where: Path | str, decimal: Decimal | None = None) -> pd.DataFrame:
    """The rows of delimited text; `where` is what errors call it, `decimal` as in `read_table`."""
    frame = tidy_cells(read_csv(content, where, as_text=decimal is not None))
    return frame if decimal is None else convert_numbers(frame, decimal)


def read_excel(path: Path) -> pd.DataFrame:
    """The first sheet of an Excel file, if the library for it is installed."""
    import pandas as pd

    if importlib.util.find_spec("openpyxl") is None:
        raise DataError(
            f"{path} is an Excel file, which needs openpyxl: install it, or save the sheet as CSV."
        )
    try:
        frame = pd.read_excel(path, engine="openpyxl")
    except Exception as error:  # whatever a damaged file makes the library stumble on
        raise DataError(f"{path} is not a readable Excel file.") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    return tidy_cells(drop_hollow(frame))


def drop_hollow(frame: pd.DataFrame) -> pd.DataFrame:
    """The table without columns that have neither a name nor a value.

    A delimiter at the end of every line makes such a column, and so do spreadsheets.
    """
    nameless = [name for name in frame.columns if str(name).startswith("Unnamed: ")]
    return frame.drop(columns=[name for name in nameless if frame[name].isna().all()])


def check_csv_file(path: Path) -> None:
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
    """The content of a file, unpacked if it is gzipped or zipped."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {str(error.strerror).lower()}.") from error
    return unpack(content, path)


def unpack(content: bytes, path: Path | str) -> bytes:
    """What is inside a gzip or zip file, known by its first bytes or its name."""
    name = str(path).lower()
    if content[:2] == b"\x1f\x8b" or name.endswith(".gz"):
        try:
            return gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{path} is a damaged gzip file: fetch it again.") from error
    if content[:4] == b"PK\x03\x04" or name.endswith(".zip"):
        return unzip(content, path)
    return content


def unzip(content: bytes, path: Path | str) -> bytes:
    """The only file in a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [item for item in archive.infolist() if not item.is_dir()]
            files = [item for item in files if not item.filename.startswith("__MACOSX")]
            if len(files) != 1:
                raise DataError(f"{path} holds {len(files)} files: unpack it and name one of them.")
            return archive.read(files[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error) as error:
        raise DataError(f"{path} is a damaged or locked zip file.") from error


def read_csv(content: bytes, path: Path | str, *, as_text: bool = False) -> pd.DataFrame:
    """Delimited text with or without a header line.

    Columns of a file without one are called "0", "1", … Lines with more or fewer fields than the
    first are an error: a file cut off half-way looks just like that.
    """
    import pandas as pd

    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        content = content.decode("utf-16", errors="replace").encode()
    content = blank_comments(content)
    if b"\0" in content[:4096]:
        raise DataError(f"{path} is not a text file.")
    # A tab at the beginning ends a name that is empty.
    text_start = content.lstrip(b"\r\n ")[:65_536].decode("utf-8-sig", errors="replace")
    if not text_start.strip():
        raise DataError(f"{path} is empty.")
    first_line = text_start.splitlines()[0]
    delimiter = find_delimiter(text_start)
    names = next(csv.reader([first_line], delimiter=delimiter))
    check_fields(content, delimiter, len(names), path)
    header = is_header(names)
    if header:
        check_header_names(names, path)
    options: dict[str, Any] = {
        "sep": delimiter,
        "header": 0 if header else None,
        "skipinitialspace": True,
        "na_values": MISSING_WORDS,
        "keep_default_na": False,
        "low_memory": False,
        "float_precision": "round_trip",  # the default may be off in the last digit
        "encoding": encoding_of(content),
        "dtype": str if as_text else None,
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
    if not as_text:
        start = pd.read_csv(io.BytesIO(content), **options | {"dtype": str, "nrows": POINT_ROWS})
        note_points(frame, start.set_axis(frame.columns, axis=1), delimiter)
    return drop_hollow(frame)


def find_delimiter(text: str) -> str:
    """The delimiter that is in the first line and divides most other lines into as many fields."""
    lines = [line for line in text.splitlines()[:-1][:SAMPLE] if line.strip()] or text.splitlines()

    def fitness(delimiter: str) -> tuple[float, int]:
        counts = [len(fields) for fields in csv.reader(lines, delimiter=delimiter) if fields]
        equal = sum(count == counts[0] for count in counts) / len(counts)
        return (equal, counts[0]) if counts[0] > 1 else (0.0, 0)

    return max(DELIMITERS, key=fitness)


def blank_comments(content: bytes) -> bytes:
    """The text with blank lines for the lines above its header that begin with #.

    A line with as many fields as the one after it is the header itself, as in `#time,load`.
    """
    start = 3 if content[:3] == codecs.BOM_UTF8 else 0
    while content[start : start + 1] == b"#":
        end = content.find(b"\n", start)
        line, after = content[start:end], content[end + 1 :].split(b"\n", 1)[0]
        same = any(line.count(d) == after.count(d) > 0 for d in (b",", b";", b"\t", b"|"))
        if end < 0 or (same and not after.startswith(b"#")):
            break
        content = content[:start] + b"\n" + content[end + 1 :]
        start += 1
    blank = content[:3] == codecs.BOM_UTF8 and content[3:4] == b"\n"
    return content[3:] if blank else content


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
    if all(is_number(name) or DATE.match(name) for name in names):
        return False
    # A first row such as 31/01/2024,5.2
    row = any(map(is_number, names)) and all(is_number(name) or looks_dated(name) for name in names)
    return not row


def is_number(text: str) -> bool:
    """Whether `text` is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_header_names(names: list[str], path: Path | str) -> None:
    """Refuse a header that uses a name twice."""
    seen: set[str] = set()
    for name in names:
        if name.strip() and name.strip() in seen:
            raise DataError(f"{path}: two columns are called {name.strip()!r}: rename one.")
        seen.add(name.strip())


def check_fields(content: bytes, delimiter: str, expected: int, path: Path | str) -> None:
    """Refuse lines with another number of fields than the first."""
    counts = quoted_counts(content, delimiter) if b'"' in content else counts_of(content, delimiter)
    wrong = np.flatnonzero((counts != expected) & (counts > 0))
    if len(wrong):
        line = int(wrong[0])
        why = f"the file may be cut off there, or its delimiter is not {delimiter!r}"
        if expected == 1:
            why = "if the first line is a title, put # before it"
        raise DataError(
            f"{path}: line {line + 1} has {counts[line]} fields where the first line has "
            f"{expected}: {why}."
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
