"""Answers as tables, and what their readers should know."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sacm.errors import SACMWarning

if TYPE_CHECKING:
    import pandas as pd


class TableAnswer(NamedTuple):
    """A table of answers, what was found or repaired in the data, and how they were read."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()


def warn_of(notes: Iterable[str]) -> None:
    """Tell the user what was repaired in the data."""
    for note in notes:
        warnings.warn(note, SACMWarning, stacklevel=3)
