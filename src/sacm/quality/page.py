"""One self-contained page on the quality of a table, and its figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from sacm.quality.config import KINDS, SUSPECT
from sacm.quality.result import GRADES, Quality, QualityEvent, format_share
from sacm.reports.page import Section, code_block, embed_figure, figures, page, paragraph
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
        (KEPT, INK, ALARM, SERIES[0], SERIES[3], SERIES[2], SERIES[4]),
        strict=True,
    )
)
_CHANNELS = 24  # in one picture
_POINTS = 1500
_ROW_HEIGHT = 0.55
_ENLARGED = 8
_LISTED = 40
_STYLE = ".overview svg{max-width:none}"


def quality_page(quality: Quality) -> str:
    """The HTML document: verdict, overview, worst events, shares, and what training would see.

    Args:
        quality: What was found.

    Returns:
        A page that loads nothing from elsewhere.
    """
    verdict, *notes = quality.sentences()
    overview = embed_figure(draw_overview(quality), "All channels over time", name="overview")
    sections = [
        Section("Overview", (f'<div class="overview">{overview}</div>', *map(paragraph, notes)))
    ]
    worst = quality.worst_events(_ENLARGED)
    if worst:
        drawn = [
            embed_figure(draw_event(quality, event), _caption(event), name=f"event-{number}")
            for number, event in enumerate(worst)
        ]
        total = len(quality.events)
        title = f"{total:,} events" + (f", the {_LISTED} worst" if total > _LISTED else "")
        sections += [
            Section("The worst, enlarged", (figures(*drawn),)),
            Section("Shares by channel", (quality.share_table().html(),)),
            Section(title, (quality.event_table(_LISTED).html(),)),
        ]
    sections.append(Section("What training would see", tuple(map(paragraph, _effects(quality)))))
    sections.append(Section("In Python", (code_block(_snippet(quality)),)))
    return page(f"Quality of {quality.recording.name}", [verdict], sections, style=_STYLE)


def _caption(event: QualityEvent) -> str:
    first, last = event.first + 1, event.last + 1
    rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"
    rule = f", rule {event.rule}" if event.rule else ""
    return f"{event.channel}, {rows}: {event.kind} ({GRADES[event.grade]}{rule})"


def _effects(quality: Quality) -> list[str]:
    unusual = float((quality.grades == SUSPECT).mean())
    if not quality.changed.any() and not unusual:
        return ["Nothing would change: no value is repaired, every value counts in full."]
    sentences = []
    if quality.changed.any():
        share = format_share(float(quality.changed.mean()))
        sentences.append(
            f"{share} of the values would be replaced by their repair before a network sees them. "
            "As targets broken values do not count."
        )
    if unusual:
        weight = quality.config.suspect_weight
        sentences.append(
            f"{format_share(unusual)} of the values are unusual: they stay as measured, and count "
            f"{100 * weight:.0f} % as targets."
        )
    return [*sentences, "Every other value stays exactly as it is."]


def _snippet(quality: Quality) -> str:
    return (
        f"quality = sacm.inspect(data, false_events={quality.config.false_events:g})\n"
        "quality.repaired       # the data, repaired, in the form in which they came\n"
        "quality.reliability    # [T, C]: how far to trust each value"
    )


def draw_overview(quality: Quality, *, width: float = 8.0) -> Figure:
    """Draw every channel over time, flagged stretches in the colour of their kind.

    Args:
        quality: What was found.
        width: In inches.

    Returns:
        The figure; of many channels those with findings, those with the most flags.
    """
    flagged = (quality.flags > 0).mean(axis=0)
    order = np.argsort(-flagged, kind="stable")[:_CHANNELS]
    if len(flagged) > _CHANNELS and flagged.any():
        order = order[flagged[order] > 0]
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


def draw_event(quality: Quality, event: QualityEvent, *, width: float = 4.0) -> Figure:
    """Draw one event with what surrounds it, as measured and as repaired."""
    channel = quality.recording.columns.index(event.channel)
    margin = max(24, 2 * event.rows)
    segment = next(rows for rows in quality.recording.segments if event.first in rows)
    rows = np.arange(
        max(segment.start, event.first - margin), min(segment.stop, event.last + margin + 1)
    )
    raw, repaired = quality.recording.values[rows, channel], quality.values[rows, channel]
    flagged = quality.flags[rows, channel] > 0
    changed = quality.changed[rows, channel]
    unsure = quality.uncertainty[rows, channel]
    with house_style():
        figure, (axes,) = canvas(height=1.9, width=width)
        where = _positions(quality, rows)
        axes.fill_between(
            where,
            repaired - unsure,
            repaired + unsure,
            where=changed,
            color=KEPT,
            alpha=0.2,
            linewidth=0,
        )
        axes.plot(where, np.where(changed, repaired, np.nan), color=KEPT, linewidth=1.4)
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
        key(figure, {"as measured": INK, **own, "repaired": KEPT})
        _few_ticks(axes, quality)
    return figure


def _draw_channel(axes: Axes, quality: Quality, channel: int) -> None:
    values, flags = quality.recording.values[:, channel], quality.flags[:, channel]
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
        plain(quality.recording.columns[channel][:14]), rotation=0, ha="right", va="center"
    )
    axes.set_yticks([])
    axes.margins(x=0)


def _positions(quality: Quality, rows: np.ndarray) -> Any:
    """Times of the rows where they are known and rows lie in one series, else row numbers."""
    times = quality.recording.times
    alone = len(quality.recording.segments) == 1
    return rows if times is None or not alone else times[rows]


def _few_ticks(axes: Axes, quality: Quality) -> None:
    """Times in as few letters as they need."""
    if quality.recording.times is not None and len(quality.recording.segments) == 1:
        locator = AutoDateLocator(minticks=3, maxticks=7)  # fewer leave some ranges without ticks
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _limit(axes: Axes, repaired: np.ndarray, normal: np.ndarray) -> None:
    """Keep extreme flagged values from hiding the rest."""
    known = np.concatenate([repaired[np.isfinite(repaired)], normal[np.isfinite(normal)]])
    if len(known):
        low, high = float(known.min()), float(known.max())
        room = 0.6 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)
