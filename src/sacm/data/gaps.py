"""Missing values: refused, filled in, or filled in and marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from sacm.data.scaling import CHUNK_ROWS
from sacm.errors import ArgumentError, DataError

Policy = Literal["error", "interpolate", "mask"]


class Filled(NamedTuple):
    """Values without gaps, which of them are real (`"mask"` only), and a note for the user."""

    values: np.ndarray
    observed: np.ndarray | None
    note: str | None


def fill(
    values: np.ndarray,
    pieces: Iterable[range],
    *,
    policy: Policy,
    columns: Sequence[str],
    where: str,
) -> Filled:
    """Treat NaN in `values` `[T, C]` by `policy`, each piece of rows by itself.

    Gaps are interpolated linearly inside a piece and its ends extended; a piece without any value
    repeats the last one before it. So nothing is filled in from a later split.
    """
    if policy not in ("error", "interpolate", "mask"):
        raise ArgumentError(f"missing must be error, interpolate or mask, got {policy!r}.")
    gaps = columns_with_gaps(values)
    if not len(gaps):
        return Filled(values, None, None)
    if policy == "error":
        row = int(np.flatnonzero(np.isnan(values[:, gaps[0]]))[0])
        raise DataError(
            f"{where}: row {row + 1} of column {columns[gaps[0]]!r} is missing; "
            "missing='interpolate' fills such gaps."
        )
    observed = ~np.isnan(values) if policy == "mask" else None
    ended = trailing_gaps(values, gaps)
    # Never into the user's own array; a file mapped copy-on-write is the reader's and may be huge.
    values = values if getattr(values, "mode", None) == "c" else values.copy()
    pieces = [rows for rows in pieces if len(rows)]
    count = 0
    for column in gaps:
        count += int(np.isnan(values[:, column]).sum())
        fill_column(values[:, column], pieces, f"{where}: column {columns[column]!r}")
    share = 100 * count / values.size
    note = f"{count:,} missing values ({share:.2g} %) in {len(gaps)} columns were interpolated."
    ends = trailing_note(ended, columns)
    return Filled(values, observed, f"{note} {ends}" if ends else note)


def fill_gaps(values: np.ndarray, pieces: Iterable[range] | None = None) -> np.ndarray:
    """Interpolate missing values linearly, the default of strategies that repair nothing.

    Args:
        values: `[T, C]`, NaN where nothing was measured.
        pieces: Ranges of rows in order of time; nothing is filled from a later one. Default: one.

    Returns:
        Values `[T, C]` without NaN. Ends are extended; a piece without any value repeats the last
        one before it, or the first one after it. A column without any value becomes 0.

    Example:
        >>> fill_gaps(np.array([[1.0], [np.nan], [3.0]])).tolist()
        [[1.0], [2.0], [3.0]]
    """
    gaps = columns_with_gaps(values)
    if not len(gaps):
        return values
    pieces = [rows for rows in pieces or [range(len(values))] if len(rows)]
    # Never into the user's array; a file mapped copy-on-write may be larger than memory.
    filled = values if getattr(values, "mode", None) == "c" else values.copy()
    for column in (filled[:, place] for place in gaps):
        measured = np.flatnonzero(~np.isnan(column))
        before = column[measured[0]] if len(measured) else column.dtype.type(0)
        for rows in pieces:
            part = column[rows.start : rows.stop]
            known = np.flatnonzero(~np.isnan(part))
            missing = np.flatnonzero(np.isnan(part))
            part[missing] = np.interp(missing, known, part[known]) if len(known) else before
            before = part[-1]
    return filled


def trailing_gaps(values: np.ndarray, columns: np.ndarray) -> dict[int, int]:
    """How many values are missing at the end of each of some columns of `[T, C]`, if any are."""
    last = {place: np.flatnonzero(~np.isnan(values[:, place])) for place in columns.tolist()}
    ends = {place: len(values) - 1 - int(own[-1]) for place, own in last.items() if len(own)}
    return {place: count for place, count in ends.items() if count}


def trailing_note(ended: dict[int, int], columns: Sequence[str]) -> str:
    """Say which columns end early: their last value was repeated."""
    if not ended:
        return ""
    named = ", ".join(f"{columns[place]!r} ({count:,})" for place, count in list(ended.items())[:5])
    more = f" and {len(ended) - 5} more" if len(ended) > 5 else ""
    return (
        f"The last rows of {named}{more} are missing: their last value was repeated, and forecasts "
        "begin after these rows; cut the table there if they should not."
    )


def columns_with_gaps(values: np.ndarray) -> np.ndarray:
    """Positions of the columns that have a NaN, found piece by piece."""
    found = np.zeros(values.shape[1], dtype=bool)
    for start in range(0, len(values), CHUNK_ROWS):
        found |= np.isnan(values[start : start + CHUNK_ROWS]).any(axis=0)
    return np.flatnonzero(found)


def fill_column(column: np.ndarray, pieces: Sequence[range], what: str) -> None:
    """Fill one column in place."""
    before = np.nan
    for rows in pieces:
        part = column[rows.start : rows.stop]
        known = np.flatnonzero(~np.isnan(part))
        if len(known):
            gaps = np.flatnonzero(np.isnan(part))
            part[gaps] = np.interp(gaps, known, part[known])
        elif np.isnan(before):
            raise DataError(
                f"{what} has no value in rows {rows.start + 1} to {rows.stop}: leave it out with "
                "ignore=, or cut those rows."
            )
        else:
            part[:] = before
        before = part[-1]


def fill_cases(X: np.ndarray, lengths: np.ndarray, where: str) -> int:
    """Interpolate NaN inside each case of `X` `[N, C, L]` in place; how many there were."""
    inside = np.arange(X.shape[2]) < lengths[:, None, None]  # [N, 1, L]
    gaps = np.isnan(X) & inside
    for case, channel in np.argwhere(gaps.any(axis=2)):
        part = X[case, channel, : lengths[case]]
        fill_column(part, [range(len(part))], f"{where}: channel {channel} of case {case + 1}")
    return int(gaps.sum())
