"""The number of a row, counted from the first training row; it sets the phase of a season."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from sacm.quality.subject import Subject


class SeriesEnd(NamedTuple):
    """How many training rows a series had, the time of the last, and the usual step.

    Times are nanoseconds since 1970, None without dates.
    """

    rows: int
    time: int | None = None
    step: float | None = None


class Clock:
    """Counts rows of later tables on from the training rows.

    Args:
        ends: The end of each training series, by name.
    """

    def __init__(self, ends: dict[str, SeriesEnd]) -> None:
        self.ends = ends

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """The clock of a subject's training rows."""
        ends: dict[str, SeriesEnd] = {}
        for label, piece, start, train in zip(
            subject.labels, subject.pieces, subject.starts, subject.train, strict=True
        ):
            if len(train):
                rows = start + train.stop - piece.start
                ends[label] = SeriesEnd(rows, *_read_end(subject.times, train))
        return cls(ends)

    def number_rows(self, subject: Subject) -> tuple[int, ...]:
        """The number of the first row of each piece.

        Data sets count from their own first row. Rows with dates are placed by them, if the
        training rows had dates; other rows follow the training rows of their series.
        """
        if subject.numbered:
            return subject.starts
        return tuple(
            self._number(label, piece, subject.times)
            for label, piece in zip(subject.labels, subject.pieces, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {name: list(end) for name, end in self.ends.items()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The clock that `to_dict` described."""
        return cls({name: SeriesEnd(*end) for name, end in record.items()})

    def _number(self, label: str, piece: range, times: np.ndarray | None) -> int:
        # One series may go by another name the next time, such as that of another file.
        alone = len(self.ends) == 1
        end = next(iter(self.ends.values())) if alone else self.ends.get(label)
        if end is None:
            return 0
        if times is None or end.time is None or not end.step:
            return end.rows
        return end.rows - 1 + round((_nanoseconds(times[piece.start]) - end.time) / end.step)


def _read_end(times: np.ndarray | None, rows: range) -> tuple[int | None, float | None]:
    """Time of the last row and the usual step; None if they are not known."""
    if times is None or len(rows) < 2:
        return None, None
    own = times[rows.start : rows.stop].astype("datetime64[ns]").astype(np.int64)
    steps = np.diff(own)
    usual = float(np.median(steps))
    # Months differ in length, so the mean is the better step; but not where rows are missing.
    even = steps.max() <= 1.5 * usual
    return int(own[-1]), float(steps.mean()) if even else usual


def _nanoseconds(time: np.datetime64) -> int:
    return int(time.astype("datetime64[ns]").astype(np.int64))
