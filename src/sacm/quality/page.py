"""One self-contained page on the quality of a table, and its figures."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.quality.config import KINDS, Kind
from sacm.quality.predictor import Array
from sacm.quality.result import Quality, QualityEvent
from sacm.reports import style
from sacm.reports.page import embed_figure, figures, page, paragraph
from sacm.reports.table import Table, record_table

_BURST, _REPAIR, _SHIFT, _SPIKE, _GAP, _RULE = style.SERIES
KIND_STYLE = {  # colour and meaning
    "missing": (_GAP, "nothing was measured"),
    "code": (_GAP, "a number that stands for a gap, such as -9999"),
    "stuck": (style.ALARM, "the same value for longer than is usual"),
    "spike": (_SPIKE, "single values far from their neighbours"),
    "burst": (_BURST, "a stretch with much more noise than usual"),
    "shift": (_SHIFT, "a stretch at another level, with a step at both ends"),
    "rule": (_RULE, "outside what a rule allows"),
}
_GRADES = (
    "Fail: broken, repaired, no target in training. Suspect: unusual, may be real, not repaired, "
    "counts half. Severity: the largest distance from what is expected, in robust deviations."
)
_CHANNELS, _BINS = 24, 500  # of one picture, and of one channel in it
_ENLARGED, _LISTED = 8, 300  # events
_ROOM = 3.0  # of the normal range: flagged values further away are drawn at the edge


def quality_page(quality: Quality) -> str:
    """The HTML document: verdict, overview, worst events, shares, and what training would see."""
    verdict, *notes = quality.sentences()
    caption = "Channels over time, in their own units."
    drawing = embed_figure(draw_overview(quality), caption, name="overview", kind="wide-figure")
    sections = {"Overview": [drawing, *map(paragraph, notes)]}
    worst = quality.worst_events(_ENLARGED)
    if worst:
        drawn: list[str] = []
        for event, row in zip(worst, quality.event_table(_ENLARGED).rows, strict=True):
            channel, kind, grade, first, last, *_ = row
            caption, name = f"{channel}, {first} to {last}: {kind}, {grade}", f"event-{len(drawn)}"
            drawn.append(embed_figure(draw_event(quality, event), caption, name=name))
        meanings = [(kind, KIND_STYLE[kind][1]) for kind in _kinds(quality.flags)]
        kinds = Table(("kind", "meaning"), tuple(meanings), words=2).html(kind="settings")
        hint = "Click a heading to sort. sacm quality --flags and --keep keep events as measured."
        listed = [paragraph(hint, note=True), quality.event_table(_LISTED).html(kind="sortable")]
        sections |= {
            "What the kinds mean": [kinds, paragraph(_GRADES, note=True)],
            "The worst events, enlarged": [figures(*drawn)],
            "Shares by channel": [quality.share_table().html(kind="sortable")],
            f"The worst of {len(quality.events):,} events": listed,
        }
    recording = quality.recording
    read = {
        "data": recording.name,
        **dict(line.partition(": ")[::2] for line in recording.understood),
        "thresholds from": f"{sum(map(len, recording.train)):,} rows",
        "false events": f"{quality.config.false_events:g} expected in 10,000 normal values",
        "written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by sacm {version('sacm')}",
    }
    sections["What was read"] = [record_table("", read).html(kind="settings")]
    return page(f"Quality of {recording.name}", [verdict], sections)


def _kinds(flags: Array) -> dict[str, str]:
    """The kinds that occur, with their colours."""
    return {KINDS[code]: KIND_STYLE[KINDS[code]][0] for code in np.unique(flags[flags > 0])}


def draw_overview(quality: Quality) -> Figure:
    """Draw the channels over time (of many those with the most flags), coloured by kind."""
    flagged = (quality.flags > 0).mean(axis=0)
    order = np.argsort(-flagged, kind="stable")[:_CHANNELS]
    height, width = (len(order) + 1) * 0.75, 2 * style.WIDTH
    with style.house_style():
        figure, axes = style.canvas(len(order), height=height, width=width)
        for panel, channel in zip(axes, np.sort(order), strict=True):
            _draw(panel, quality, channel, np.arange(len(quality.flags)), style.MUTED)
            panel.label_outer()
        style.key(figure, {"as measured": style.MUTED, **_kinds(quality.flags)})
    return figure


def draw_event(quality: Quality, event: QualityEvent, *, width: float = style.WIDTH) -> Figure:
    """Draw one event with what surrounds it, as measured and as repaired."""
    channel, own = quality.recording.columns.index(event.channel), quality.recording.rows
    margin = max(_CHANNELS, 2 * event.rows)
    first = max(own.first[event.first], event.first - margin)
    rows = np.arange(first, min(own.stop[event.first], event.last + margin + 1))
    with style.house_style():
        figure, (axes,) = style.canvas(height=width / 2, width=width)
        _draw(axes, quality, channel, rows, style.INK, repairs=True)
        kinds = _kinds(quality.flags[rows, channel])
        repairs = {"repaired": style.KEPT} if quality.changed[rows, channel].any() else {}
        style.key(figure, {"as measured": style.INK, **kinds, **repairs})
    return figure


def _draw(
    axes: Axes, quality: Quality, channel: int, rows: Array, colour: str, *, repairs: bool = False
) -> None:
    """Draw rows of a channel as a line, with dots on flagged values, dashes where they miss."""
    recording = quality.recording
    dated = recording.times is not None and len(recording.segments) == 1
    where: Any = recording.times[rows] if dated else rows + 1  # type: ignore[index]  # dated
    measured, flags = recording.values[rows, channel], quality.flags[rows, channel]
    line = shown = np.where(flags > 0, np.nan, measured)
    if repairs:
        arrays = quality.values, quality.uncertainty, quality.changed
        repaired, unsure, changed = (array[rows, channel] for array in arrays)
        line, shown = measured, np.concatenate([shown, repaired])
        band: Any = {"color": style.KEPT, "alpha": 0.2, "linewidth": 0}
        axes.fill_between(where, repaired - unsure, repaired + unsure, where=changed, **band)
        dots: Any = {"color": style.KEPT, "marker": ".", "markersize": 2}  # one value has no line
        axes.plot(where, np.where(changed, repaired, np.nan), **dots)
    limits = _limits(shown, measured[flags > 0], _ROOM**_ROOM if repairs else _ROOM)
    thin = style.thin_out_range(line, _BINS)
    axes.plot(where[thin], np.clip(line[thin], *limits), color=colour)
    for kind, own in _kinds(flags).items():
        at = np.flatnonzero(flags == KINDS.index(kind))
        at = at[:: max(1, len(at) // _BINS)]
        height = np.nan_to_num(np.clip(measured[at], *limits), nan=limits[0])
        mark = "|" if kind == KINDS[Kind.MISSING] else "."
        axes.plot(where[at], height, mark, markersize=style.WIDTH, color=own)
    axes.set_ylim(*limits)
    axes.set_title(fill(style.plain(recording.columns[channel]), 48))
    style.number_axis(axes)
    style.date_axis(axes, dated)


def _limits(normal: Array, flagged: Array, room: float) -> tuple[float, float]:
    """Ends of an axis that shows flagged values too, unless they are very far from the others."""
    flagged = flagged[np.isfinite(flagged)]
    shown = normal[np.isfinite(normal)] if np.isfinite(normal).any() else flagged
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    span = (high - low) or abs(high) or 1.0
    low = float(max(flagged.min(initial=low), low - room * span))
    high = float(min(flagged.max(initial=high), high + room * span))
    margin = 0.06 * (high - low) or span
    return low - margin, high + margin
