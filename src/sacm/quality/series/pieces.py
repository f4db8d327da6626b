"""Checked input: a table of numbers, and the pieces of it that are judged separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sacm.errors import ArgumentError, DataError
from sacm.quality.series.arrays import Flags, Floats


def check_table(values: Any) -> Floats:
    """Values as float64 `[T, C]`; infinite ones become NaN.

    Raises:
        DataError: If they are not a table of numbers with rows and channels.
    """
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"values must be numbers in a table [rows, channels]: {error}") from None
    if table.ndim != 2 or 0 in table.shape:
        raise DataError(
            f"values have the shape {table.shape}; pass a table [rows, channels] with at least "
            "one row and one channel"
        )
    infinite = np.isinf(table)
    return np.where(infinite, np.nan, table) if infinite.any() else table


def check_flags(flags: Any, shape: tuple[int, ...]) -> Flags:
    """Flags as uint8 of the same shape as the values.

    Raises:
        ArgumentError: If the shape is another.
    """
    table = np.asarray(flags, dtype=np.uint8)
    if table.shape != shape:
        raise ArgumentError(
            f"flags have the shape {table.shape} and the values {shape}; both must be the same"
        )
    return table


def check_pieces(
    pieces: Sequence[range] | None, start: int | Sequence[int], rows: int
) -> list[tuple[slice, int]]:
    """Slices of the pieces with the row number of each one's first row.

    Args:
        pieces: Ranges of rows that are series of their own; None for one series.
        start: Row number of the first row, counted from the first row of the fit; one number
            for every piece, or one for each.
        rows: Rows of the table.

    Raises:
        ArgumentError: If pieces overlap, leave rows out or do not match `start`.
    """
    ranges = [range(rows)] if pieces is None else [piece for piece in pieces if len(piece)]
    numbers = [start] * len(ranges) if isinstance(start, int | np.integer) else list(start)
    if len(numbers) != len(ranges):
        raise ArgumentError(
            f"{len(numbers)} start rows were given for {len(ranges)} pieces; give one for each"
        )
    at = 0
    for piece in ranges:
        if piece.start != at or piece.step != 1:
            raise ArgumentError(
                f"pieces must follow one another without gaps; {piece} does not begin at row {at}"
            )
        at = piece.stop
    if at != rows:
        raise ArgumentError(f"pieces end at row {at}, the values have {rows} rows")
    return [
        (slice(piece.start, piece.stop), int(number))
        for piece, number in zip(ranges, numbers, strict=True)
    ]
