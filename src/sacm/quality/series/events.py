"""Flags as a list of events: which channel, what, from where to where, how bad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sacm.quality.kinds import CODE, KINDS, MISSING, SPIKE
from sacm.quality.series.arrays import Flags, Floats
from sacm.quality.series.limits import robust_scale
from sacm.quality.series.pieces import check_flags, check_pieces, check_table


class Event(NamedTuple):
    """One stretch of one kind in one channel.

    Attributes:
        channel: Number of the channel.
        kind: Name of the fault.
        first: First row.
        last: Last row.
        severity: Largest distance of its values from what they probably were (from the channel's
            median if no repair is given), in deviations of the channel. Gaps and codes have no
            value; for them it is the deviation to expect of the repair, or 1 without one.
    """

    channel: int
    kind: str
    first: int
    last: int
    severity: float


def events(
    flags: Any,
    values: Any,
    repaired: Any = None,
    uncertainty: Any = None,
    pieces: Sequence[range] | None = None,
) -> list[Event]:
    """List what was flagged, by first row.

    Args:
        flags: Flags `[T, C]`.
        values: Values as they came `[T, C]`.
        repaired: Repaired values `[T, C]`, if there are any.
        uncertainty: Deviation to expect of the repaired values `[T, C]`, if it is known.
        pieces: Ranges of rows that are series of their own; no event crosses a border.

    Returns:
        The events. Spikes next to one another are events of their own.
    """
    table = check_table(values)
    marks = check_flags(flags, table.shape)
    borders = [rows.start for rows, _ in check_pieces(pieces, 0, len(table))]
    found: list[Event] = []
    for channel in range(table.shape[1]):
        column, good = table[:, channel], (marks[:, channel] == 0) & np.isfinite(table[:, channel])
        centre = float(np.median(column[good])) if good.any() else 0.0
        scale = (robust_scale(column[good]) if good.any() else 0.0) or 1.0
        truth = (
            np.full(len(column), centre) if repaired is None else np.asarray(repaired)[:, channel]
        )
        away = np.abs(column - truth) / scale
        unsure = None if uncertainty is None else np.asarray(uncertainty)[:, channel] / scale
        found += _list_spans(channel, marks[:, channel], borders, away, unsure)
    return sorted(found, key=lambda event: (event.first, event.channel))


def _list_spans(
    channel: int, marks: Flags, borders: list[int], away: Floats, unsure: Floats | None
) -> list[Event]:
    """Every stretch of one kind in one channel.

    Args:
        channel: Number of the channel.
        marks: Its flags `[T]`.
        borders: First rows of the pieces.
        away: Distance of each value from what it probably was `[T]`, in deviations.
        unsure: Deviation to expect of each repair `[T]`, in deviations, if it is known.
    """
    changed = np.concatenate(([True], marks[1:] != marks[:-1]))
    changed[borders] = True
    changed |= marks == SPIKE
    starts = np.flatnonzero(changed)
    kinds = marks[starts]
    sizes = np.fmax.reduceat(away, starts)
    empty = 1.0 if unsure is None else np.maximum.reduceat(unsure, starts)
    sizes = np.where((kinds == MISSING) | (kinds == CODE), empty, sizes)
    lasts = np.concatenate((starts[1:], [len(marks)])) - 1
    flagged = kinds > 0
    columns = (one[flagged].tolist() for one in (kinds, starts, lasts, sizes))
    return [
        Event(channel, KINDS[kind], first, last, size)
        for kind, first, last, size in zip(*columns, strict=True)
    ]
