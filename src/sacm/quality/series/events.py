"""Flags as a list of events: which channel, what, from where to where, how bad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sacm.quality.kinds import CODE, KINDS, MISSING, SPIKE
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
    found = []
    for channel in range(table.shape[1]):
        column, good = table[:, channel], (marks[:, channel] == 0) & np.isfinite(table[:, channel])
        centre = float(np.median(column[good])) if good.any() else 0.0
        scale = (robust_scale(column[good]) if good.any() else 0.0) or 1.0
        truth = (
            np.full(len(column), centre) if repaired is None else np.asarray(repaired)[:, channel]
        )
        away = np.abs(column - truth) / scale
        unsure = None if uncertainty is None else np.asarray(uncertainty)[:, channel] / scale
        for kind, start, stop in _find_spans(marks[:, channel], borders):
            if kind in (MISSING, CODE):
                size = 1.0 if unsure is None else float(unsure[start:stop].max())
            else:
                size = float(np.nanmax(away[start:stop]))
            found.append(Event(channel, KINDS[kind], start, stop - 1, size))
    return sorted(found, key=lambda event: (event.first, event.channel))


def _find_spans(marks: np.ndarray, borders: list[int]) -> list[tuple[int, int, int]]:
    """Kind, first row and row after the last of every stretch of one kind."""
    changed = np.concatenate(([True], marks[1:] != marks[:-1]))
    changed[borders] = True
    changed |= marks == SPIKE
    starts = np.flatnonzero(changed)
    stops = np.concatenate((starts[1:], [len(marks)]))
    return [
        (int(marks[start]), int(start), int(stop))
        for start, stop in zip(starts, stops, strict=True)
        if marks[start]
    ]
