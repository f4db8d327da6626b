"""One self-contained page on the quality of a table, and its figures."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.quality.config import GRADES, KINDS, Kind
from sacm.quality.predictor import Array
from sacm.quality.result import Quality, QualityEvent
from sacm.reports import style
from sacm.reports.page import embed_figure, figures, page, paragraph
from sacm.reports.table import Table

_BURST, _REPAIR, _SHIFT, _SPIKE, _GAP, _RULE = style.SERIES
COLOURS = {
    "missing": _GAP,
    "code": _GAP,
    "stuck": style.ALARM,
    "spike": _SPIKE,
    "burst": _BURST,
    "shift": _SHIFT,
    "rule": _RULE,
}
KIND_WORDS = {
    "missing": "nothing was measured",
    "code": "a number that stands for a gap, such as -9999",
    "stuck": "the same value for longer than is usual",
    "spike": "single values far from their neighbours",
    "burst": "a stretch with much more noise than usual",
    "shift": "a stretch at another level, with a step at both ends",
    "rule": "outside what a rule allows",
}
_GRADES = (
    "Fail: broken, replaced by its repair, no target in training. Suspect: unusual, may be real, "
    "stays as measured, counts less as a target. "
    "Severity: the largest distance between a value and its repair, in robust standard deviations "
    "of the channel."
)
_CHANNELS, _BINS = 24, 500  # of one picture, and of one channel in it
_ENLARGED, _LISTED = 8, 300  # events
_ROOM = 3.0  # of the normal range: flagged values further away are drawn at the edge


def quality_page(quality: Quality) -> str:
    """The HTML document: verdict, overview, worst events, shares, and what training would see."""
    verdict, *notes = quality.sentences()
    caption = "All channels over time, in their own units."
    drawing = embed_figure(draw_overview(quality), caption, name="overview", kind="wide-figure")
    sections = {"Overview": [drawing, *map(paragraph, notes)]}
    worst = quality.worst_events(_ENLARGED)
    if worst:
        drawn = [
            embed_figure(draw_event(quality, event), _caption(event), name=f"event-{number}")
            for number, event in enumerate(worst)
        ]
        meanings = [(kind, KIND_WORDS[kind]) for kind in _kinds(quality.flags)]
        kinds = Table(("kind", "meaning"), tuple(meanings), words=2).html(kind="settings")
        hint = (
            f"The worst of {len(quality.events):,} events. A click on a heading sorts. Events that "
            "are real stay as measured with sacm quality --keep: see --flags."
        )
        listed = quality.event_table(_LISTED).html(kind="sortable")
        sections |= {
            "What the kinds mean": [kinds, paragraph(_GRADES, note=True)],
            "The worst events, enlarged": [figures(*drawn)],
            "Shares by channel": [quality.share_table().html(kind="sortable")],
            "Events": [paragraph(hint, note=True), listed],
        }
    sections["What was read"] = [_what_was_read(quality).html(kind="settings")]
    return page(f"Quality of {quality.recording.name}", [verdict], sections)


def _kinds(flags: Array) -> list[str]:
    """The kinds that occur."""
    return [KINDS[code] for code in np.unique(flags[flags > 0])]


def _caption(event: QualityEvent) -> str:
    rows = f"row {event.first + 1:,}" + (f" to {event.last + 1:,}" if event.rows > 1 else "")
    rule = f", rule {event.rule}" if event.rule else ""
    return f"{event.channel}, {rows}: {event.kind} ({GRADES[event.grade]}{rule})"


def _what_was_read(quality: Quality) -> Table:
    """Source of the data, how it was read, options and date, so that the page can be checked."""
    recording = quality.recording
    size = f"{len(recording.values):,} rows of {len(recording.columns)} channels"
    rows: list[tuple[str, Any]] = [("data", recording.name), ("size", size)]
    for line in recording.understood:
        name, _, rest = line.partition(": ")
        rows.append((name.partition(" (")[0], rest) if rest else ("", line))
    if not recording.understood and recording.times is not None and len(recording.times):
        first, last = recording.times[[0, -1]].astype("datetime64[s]")
        rows.append(("time", f"{first} to {last}"))
    rows += [
        ("thresholds from", f"{sum(map(len, recording.train)):,} rows"),
        ("false events", f"{quality.config.false_events:g} expected in 10,000 normal values"),
        ("written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by sacm {version('sacm')}"),
    ]
    return Table(("", "value"), tuple(rows), words=2)


def draw_overview(quality: Quality, *, width: float = 2 * style.WIDTH) -> Figure:
    """Draw the channels over time (of many those with the most flags), coloured by kind."""
    flagged = (quality.flags > 0).mean(axis=0)
    order = np.argsort(-flagged, kind="stable")[:_CHANNELS]
    if len(flagged) > _CHANNELS and flagged.any():
        order = order[flagged[order] > 0]
    with style.house_style():
        figure, axes = style.canvas(len(order), height=(len(order) + 1) * 0.75, width=width)
        for panel, channel in zip(axes, np.sort(order), strict=True):
            values, flags = quality.recording.values[:, channel], quality.flags[:, channel]
            normal = np.where(flags > 0, np.nan, values)
            rows = style.thin_out_range(normal, _BINS)
            panel.plot(_positions(quality, rows), normal[rows], color=style.MUTED)
            bad = np.flatnonzero(flags)
            bad = bad[:: max(1, len(bad) // _BINS)]
            limits = _limits(normal, values[bad], _ROOM)
            _draw_flags(panel, _positions(quality, bad), values[bad], flags[bad], limits)
            _finish(panel, quality, limits, quality.recording.columns[channel])
        for panel in axes[:-1]:
            panel.set_xlabel("")
            panel.tick_params(labelbottom=False)
            panel.xaxis.get_offset_text().set_visible(False)
        kinds = {kind: COLOURS[kind] for kind in _kinds(quality.flags)}
        if kinds:
            style.key(figure, {"as measured": style.MUTED, **kinds})
    return figure


def draw_event(quality: Quality, event: QualityEvent, *, width: float = style.WIDTH) -> Figure:
    """Draw one event with what surrounds it, as measured and as repaired."""
    recording = quality.recording
    channel = recording.columns.index(event.channel)
    margin = max(_CHANNELS, 2 * event.rows)
    segment = next(rows for rows in recording.segments if event.first in rows)
    first = max(segment.start, event.first - margin)
    rows = np.arange(first, min(segment.stop, event.last + margin + 1))
    arrays = recording.values, quality.values, quality.flags, quality.changed, quality.uncertainty
    measured, repaired, flags, changed, unsure = (array[rows, channel] for array in arrays)
    with style.house_style():
        figure, (axes,) = style.canvas(height=width / 2, width=width)
        where = _positions(quality, rows)
        band: Any = {"color": style.KEPT, "alpha": 0.2, "linewidth": 0}
        axes.fill_between(where, repaired - unsure, repaired + unsure, where=changed, **band)
        line: Any = {"color": style.KEPT, "marker": ".", "markersize": 3}  # one value has no line
        axes.plot(where, np.where(changed, repaired, np.nan), **line)
        shown = np.concatenate([repaired, measured[flags == 0]])
        limits = _limits(shown, measured[flags > 0], _ROOM**_ROOM)
        axes.plot(where, np.clip(measured, *limits), color=style.INK)
        _draw_flags(axes, where, measured, flags, limits)
        kinds = {kind: COLOURS[kind] for kind in _kinds(flags)}
        repairs = {"repaired": style.KEPT} if changed.any() else {}
        style.key(figure, {"as measured": style.INK, **kinds, **repairs})
        _finish(axes, quality, limits, event.channel)
    return figure


def _draw_flags(
    axes: Axes, where: Any, values: Array, flags: Array, limits: tuple[float, float]
) -> None:
    """Dots on flagged values, dashes where they are missing."""
    for kind in _kinds(flags):
        at, mark = flags == KINDS.index(kind), "|" if kind == KINDS[Kind.MISSING] else "."
        height = np.nan_to_num(np.clip(values[at], *limits), nan=limits[0])
        axes.plot(where[at], height, mark, markersize=style.WIDTH, color=COLOURS[kind])


def _finish(axes: Axes, quality: Quality, limits: tuple[float, float], title: str) -> None:
    """Limits, title and labels of a panel."""
    recording = quality.recording
    axes.set_ylim(*limits)
    axes.set_title(fill(style.plain(title), 48))
    style.number_axis(axes)
    style.date_axis(axes, recording.times is not None and len(recording.segments) == 1)


def _limits(normal: Array, flagged: Array, room: float) -> tuple[float, float]:
    """Ends of an axis that shows flagged values too, unless they are very far from the others."""
    extreme = flagged[np.isfinite(flagged)]
    shown = normal[np.isfinite(normal)] if np.isfinite(normal).any() else extreme
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    span = (high - low) or abs(high) or 1.0
    if len(extreme):
        low = max(min(low, float(extreme.min())), low - room * span)
        high = min(max(high, float(extreme.max())), high + room * span)
    margin = 0.06 * (high - low) or span
    return low - margin, high + margin


def _positions(quality: Quality, rows: Array) -> Any:
    """Times of the rows where they are known and rows lie in one series, else row numbers."""
    times = quality.recording.times
    return rows + 1 if times is None or len(quality.recording.segments) > 1 else times[rows]
