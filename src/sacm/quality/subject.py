"""Rows of any kind of data, ready to be judged, with the way back to how they came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from sacm.errors import ArgumentError

Restore = Callable[[np.ndarray, np.ndarray], Any]
_LISTED = 8


@dataclass(frozen=True, eq=False)
class Subject:
    """Rows to inspect.

    Attributes:
        name: A short name.
        values: `[T, C]` float32 or float64, NaN where missing.
        columns: Names of the C channels.
        pieces: Ranges of rows that are series of their own and cover all rows; none is empty.
        labels: The name of each piece.
        starts: The number of each piece's first row, counted from the first row of its series.
        train: For each piece the rows that belong to the training part.
        times: `[T]` datetime64, or None.
        restore: Takes repaired values `[T, C]` and which of them were changed `[T, C]`, and gives
            the data back in the form in which they came. What was not changed stays bit-identical.
        borders: Rows at which a split begins or ends; what lies beyond one must not be looked at.
        numbered: Whether `starts` are known from the data, as those of a data set are.
        notes: What was found or guessed while reading.
        understood: How a user's table was read, in short lines.
    """

    name: str
    values: np.ndarray
    columns: tuple[str, ...]
    pieces: tuple[range, ...]
    labels: tuple[str, ...]
    starts: tuple[int, ...]
    train: tuple[range, ...]
    times: np.ndarray | None
    restore: Restore
    borders: tuple[int, ...] = ()
    numbered: bool = False
    notes: tuple[str, ...] = field(default=())
    understood: tuple[str, ...] = ()

    def training_rows(self) -> tuple[np.ndarray, list[range], list[int]]:
        """Values of the training rows `[T', C]`, their pieces, and the number of each first row."""
        kept = [
            (rows, start + rows.start - piece.start)
            for rows, start, piece in zip(self.train, self.starts, self.pieces, strict=True)
            if len(rows)
        ]
        ends = np.cumsum([0, *(len(rows) for rows, _ in kept)])
        pieces = [range(int(a), int(b)) for a, b in pairwise(ends)]
        if len(kept) == 1:
            values = self.values[kept[0][0].start : kept[0][0].stop]
        else:
            values = np.concatenate([self.values[rows.start : rows.stop] for rows, _ in kept])
        return values, pieces, [start for _, start in kept]

    @property
    def trains_on_all(self) -> bool:
        """Whether every row is a training row, and no border lies between them."""
        return self.train == self.pieces and self.parts()[0] == list(self.pieces)

    def parts(self) -> tuple[list[range], list[int]]:
        """Pieces cut at the borders of splits, and the number of each one's first row."""
        parts, starts = [], []
        for piece, start, train in zip(self.pieces, self.starts, self.train, strict=True):
            cuts = {*self.borders, train.start, train.stop}
            ends = sorted({piece.start, piece.stop, *(cut for cut in cuts if cut in piece)})
            for first, last in pairwise(ends):
                parts.append(range(first, last))
                starts.append(start + first - piece.start)
        return parts, starts


def check_columns(subject: Subject, columns: Sequence[str]) -> None:
    """Refuse rows whose channels are not those of the training rows."""
    if subject.values.shape[1] != len(columns):
        raise ArgumentError(
            f"{subject.name} has {subject.values.shape[1]} channels, the training rows had "
            f"{len(columns)}."
        )
    named = not any(all(each.isdigit() for each in names) for names in (subject.columns, columns))
    if named and tuple(subject.columns) != tuple(columns):
        raise ArgumentError(
            f"{subject.name} has the columns {_list(subject.columns)}; the training rows had "
            f"{_list(columns)}, in this order."
        )


def _list(names: Sequence[str]) -> str:
    """Names, shortened if there are many."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(name[:40] for name in names[:_LISTED]) + more
