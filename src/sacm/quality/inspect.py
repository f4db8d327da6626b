"""`sacm.inspect`: look at data of any kind and say what is broken in them."""

from __future__ import annotations

from typing import Any

from sacm.quality.guard import Guard
from sacm.quality.progress import Tell, tell_nobody
from sacm.quality.quality import Quality
from sacm.quality.reading import read_subject
from sacm.quality.subject import Subject


def inspect(
    data: Any, train: Any = None, sensitivity: float = 1.0, *, time: str | None = None
) -> Quality:
    """Find broken values, and what they probably were.

    Kinds: missing, code (one extreme value that stands for a gap, such as -9999), stuck, spike,
    burst (of noise), shift (of level, that returns), range (outside of all limits), clipped. Rests
    that are natural for a channel, seasons, steps and rare but real peaks are not flagged. A
    channel that cannot be judged is named with the reason.

    Args:
        data: A pandas or polars frame, array `[T]` or `[T, C]`, tensor, file, long table
            `unique_id, ds, y`, or one of the three data sets.
        train: Rows that thresholds are learnt from: a share in (0, 1], a number of rows, or a
            range. None: the data set's own training part, or all rows.
        sensitivity: 1 keeps false flags on healthy series below 1 %; larger values flag more.
        time: The time column of a frame or file, where it is not found by itself.

    Returns:
        A `Quality`: flags, reliability, repaired values, events, `summary()`, `plot()`, `report()`.

    Raises:
        DataError: The data cannot be read.
        ArgumentError: `train` names no rows, or `sensitivity` is no positive number.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(600) / 4)[:, None] + np.random.default_rng(0).normal(
        ...     0, 0.05, (600, 1))
        >>> rows[200:240] = rows[200]
        >>> [event.kind for event in inspect(rows).events]
        ['stuck']
    """
    return inspect_subject(read_subject(data, train, time=time), sensitivity)


def inspect_subject(subject: Subject, sensitivity: float, tell: Tell = tell_nobody) -> Quality:
    """Inspect rows that were read before; `tell` hears of each step of the work."""
    guard = Guard(sensitivity, window=None)
    return Quality.of(subject, guard, guard.inspect(subject, tell))
