"""Answers as tables, with notes on the data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sacm.errors import SACMWarning

if TYPE_CHECKING:
    import pandas as pd

    from sacm.inference.history import SeriesReading


class TableAnswer(NamedTuple):
    """A table of answers.

    Attributes:
        frame: The table.
        notes: What was found or repaired in the data, one sentence each.
        understood: How the data were read, one sentence each.
        reading: The series that a forecast follows; None for other tasks.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()
    reading: SeriesReading | None = None


def warn_of(notes: Iterable[str]) -> None:
    """Give each note on the data as a warning."""
    for note in notes:
        warnings.warn(note, SACMWarning, stacklevel=3)
