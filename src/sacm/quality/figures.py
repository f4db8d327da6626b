"""Pictures of an inspection: all channels over time, and single events with their repair."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from sacm.quality.kinds import KINDS
from sacm.quality.record import QualityEvent, QualityRecord
from sacm.reports.style import (
    ALARM,
    INK,
    KEPT,
    MUTED,
    SERIES,
    canvas,
    house_style,
    key,
    plain,
)

COLOURS = dict(
    zip(
        KINDS[1:],
        (KEPT, INK, ALARM, SERIES[0], SERIES[3], SERIES[2], SERIES[4], SERIES[5]),
        strict=True,
    )
)
_CHANNELS = 24  # in one picture; the most broken ones are shown
_POINTS = 1500
_ROW_HEIGHT = 0.55


def draw_overview(quality: QualityRecord, *, width: float = 8.0) -> Figure:
    """Draw every channel over time, broken stretches in the colour of their kind.

    Args:
        quality: What was found.
        width: In inches.

    Returns:
        The figure; of many channels those with findings, the most broken ones at most.
    """
    broken = (quality.flags > 0).mean(axis=0)
    order = np.argsort(-broken, kind="stable")[:_CHANNELS]
    if len(broken) > _CHANNELS and broken.any():
        order = order[broken[order] > 0]
    shown = np.sort(order)
    with house_style():
        figure, axes = canvas(len(shown), height=0.8 + _ROW_HEIGHT * len(shown), width=width)
        for place, channel in zip(axes, shown, strict=True):
            _draw_channel(place, quality, int(channel))
        for place in axes[:-1]:
            place.tick_params(labelbottom=False)
        occurring = {
            kind: COLOURS[kind]
            for code, kind in enumerate(KINDS)
            if code and (quality.flags == code).any()
        }
        if occurring:
            key(figure, occurring)
    return figure


def draw_event(quality: QualityRecord, event: QualityEvent, *, width: float = 4.0) -> Figure:
    """Draw one event with what surrounds it, as it came and as it was repaired."""
    channel = quality.subject.columns.index(event.channel)
    margin = max(24, 2 * event.rows)
    piece = next(rows for rows in quality.subject.pieces if event.first in rows)
    rows = np.arange(
        max(piece.start, event.first - margin), min(piece.stop, event.last + margin + 1)
    )
    raw, repaired = quality.subject.values[rows, channel], quality.values[rows, channel]
    flagged = quality.flags[rows, channel] > 0
    unsure = np.where(flagged, quality.uncertainty[rows, channel], 0.0)
    with house_style():
        figure, (axes,) = canvas(height=1.9, width=width)
        where = _positions(quality, rows)
        axes.fill_between(
            where,
            repaired - unsure,
            repaired + unsure,
            where=flagged,
            color=KEPT,
            alpha=0.2,
            linewidth=0,
        )
        axes.plot(where, np.where(flagged, repaired, np.nan), color=KEPT, linewidth=1.4)
        axes.plot(where, raw, color=INK, linewidth=0.8)
        axes.plot(
            where,
            np.where(flagged, raw, np.nan),
            color=COLOURS[event.kind],
            marker=".",
            markersize=3,
            linewidth=1.2,
        )
        _limit(axes, repaired, raw[~flagged])
        axes.set_title(plain(f"{event.channel}: {event.kind}"))
        # A missing value cannot be drawn, only its repair.
        own = {} if event.kind == "missing" else {event.kind: COLOURS[event.kind]}
        key(figure, {"as it came": INK, **own, "repaired": KEPT})
        _few_ticks(axes, quality)
    return figure


def _draw_channel(axes: Axes, quality: QualityRecord, channel: int) -> None:
    values, flags = quality.subject.values[:, channel], quality.flags[:, channel]
    stride = max(1, len(values) // _POINTS)
    rows = np.arange(0, len(values), stride)
    good = np.where(flags > 0, np.nan, values)
    axes.plot(_positions(quality, rows), good[rows], color=MUTED, linewidth=0.5)
    for code in np.unique(flags[flags > 0]):
        own = np.flatnonzero(flags == code)
        own = own[:: max(1, len(own) // _POINTS)]
        axes.plot(
            _positions(quality, own),
            np.nan_to_num(quality.values[own, channel]),
            linestyle="",
            marker="|",
            markersize=4,
            color=COLOURS[KINDS[int(code)]],
        )
    axes.set_ylabel(
        plain(quality.subject.columns[channel][:14]), rotation=0, ha="right", va="center"
    )
    axes.set_yticks([])
    axes.margins(x=0)


def _positions(quality: QualityRecord, rows: np.ndarray) -> Any:
    """Times of the rows where they are known and rows lie in one series, else row numbers."""
    times = quality.subject.times
    alone = len(quality.subject.pieces) == 1
    return rows if times is None or not alone else times[rows]


def _few_ticks(axes: Axes, quality: QualityRecord) -> None:
    """Times in as few letters as they need."""
    if quality.subject.times is not None and len(quality.subject.pieces) == 1:
        locator = AutoDateLocator(minticks=3, maxticks=7)  # fewer leave some ranges without ticks
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _limit(axes: Axes, repaired: np.ndarray, healthy: np.ndarray) -> None:
    """Keep extreme broken values from hiding the rest."""
    known = np.concatenate([repaired[np.isfinite(repaired)], healthy[np.isfinite(healthy)]])
    if len(known):
        low, high = float(known.min()), float(known.max())
        room = 0.6 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)
