"""One self-contained page on the quality of a table, and its figures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.quality.config import KINDS, MISSING, SUSPECT
from sacm.quality.result import GRADES, Quality, QualityEvent, format_share
from sacm.reports.page import Section, code_block, embed_figure, figures, page, paragraph
from sacm.reports.style import (
    ALARM,
    INK,
    KEPT,
    MUTED,
    SERIES,
    canvas,
    date_axis,
    house_style,
    key,
    number_axis,
    plain,
    thin_out_range,
)
from sacm.reports.table import Table

# Repairs are drawn in KEPT, which is the colour of no kind.
COLOURS = dict(
    zip(
        KINDS[1:],
        (SERIES[4], INK, ALARM, SERIES[0], SERIES[3], SERIES[2], SERIES[5]),
        strict=True,
    )
)
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
    "Fail: broken, replaced by its repair. Suspect: unusual, may be real, stays as measured. "
    "Severity: the largest distance between a value and its repair, in robust standard deviations "
    "of the channel."
)
_CHANNELS = 24  # in one picture
_POINTS = 12_000  # in one picture
_ROW_HEIGHT = 0.75  # inches
_ENLARGED = 8
_LISTED = 300
_ROOM = 3.0  # of the normal range: flagged values further away are drawn at the edge
_STYLE = ".swatch{display:inline-block;width:.8em;height:.8em;margin-right:.5em}"
# Checked events become a file for `--keep`.
_KEEP = """<script>
(() => {{
  const lines = {lines}, button = document.getElementById('keep');
  const boxes = [...document.querySelectorAll('input[data-event]')];
  const show = () => {{ button.disabled = !boxes.some(box => box.checked); }};
  boxes.forEach(box => box.addEventListener('change', show));
  button.addEventListener('click', () => {{
    const kept = boxes.filter(box => box.checked).map(box => lines[box.dataset.event] + 'yes');
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([[{header}, ...kept].join('\\n') + '\\n']));
    link.download = 'keep.csv';
    link.click();
  }});
  show();
}})();
</script>
"""


def quality_page(quality: Quality) -> str:
    """The HTML document: verdict, overview, worst events, shares, and what training would see.

    Args:
        quality: What was found.

    Returns:
        A page that loads nothing from elsewhere.
    """
    verdict, *notes = quality.sentences()
    caption = "All channels over time, in their own units."
    overview = embed_figure(draw_overview(quality), caption, name="overview", kind="wide-figure")
    sections = [Section("Overview", (overview, *map(paragraph, notes)))]
    worst = quality.worst_events(_ENLARGED)
    script = ""
    if worst:
        drawn = [
            embed_figure(draw_event(quality, event), _caption(event), name=f"event-{number}")
            for number, event in enumerate(worst)
        ]
        listed, script = _event_list(quality)
        sections += [
            Section("What the kinds mean", (_kinds(quality), paragraph(_GRADES, note=True))),
            Section("The worst events, enlarged", (figures(*drawn),)),
            Section("Shares by channel", (quality.share_table().html(kind="sortable"),)),
            listed,
        ]
    sections.append(Section("What training would see", tuple(map(paragraph, _effects(quality)))))
    sections.append(Section("What was read", (_what_was_read(quality).html(kind="settings"),)))
    sections.append(Section("In Python", (code_block(_snippet(quality)),)))
    title = f"Quality of {quality.recording.name}"
    return page(title, [verdict], sections, style=_STYLE, script=script)


def _caption(event: QualityEvent) -> str:
    first, last = event.first + 1, event.last + 1
    rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"
    rule = f", rule {event.rule}" if event.rule else ""
    return f"{event.channel}, {rows}: {event.kind} ({GRADES[event.grade]}{rule})"


def _kinds(quality: Quality) -> str:
    """The kinds that occur, with their colours, in words."""
    rows = []
    for code, kind in enumerate(KINDS[1:], 1):
        count = int((quality.flags == code).sum())
        if count:
            swatch = f'<span class="swatch" style="background:{COLOURS[kind]}"></span>'
            cells = f'<td class="text">{swatch}{kind}</td><td class="text">{KIND_WORDS[kind]}</td>'
            rows.append(f"<tr>{cells}<td>{count:,}</td></tr>")
    head = '<tr><th class="text">kind</th><th class="text">meaning</th><th>values</th></tr>'
    return (
        '<div class="wide"><table class="settings">'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _event_list(quality: Quality) -> tuple[Section, str]:
    """The worst events, each with a box to keep its values, and the script that saves them."""
    worst = quality.worst_events(_LISTED)
    position = {id(event): place for place, event in enumerate(quality.events)}
    header, *lines = quality.to_frame().to_csv(index=False).splitlines()
    script = _KEEP.format(
        header=_in_script(header),
        lines=_in_script([lines[position[id(event)]] for event in worst]),
    )
    # The table with a column of boxes before the others.
    head, _, body = quality.event_table(_LISTED).html(kind="sortable").partition("<tbody>")
    boxes = "".join(
        f'<tr><td><input type="checkbox" data-event="{number}" aria-label="keep"></td>{row}'
        for number, row in enumerate(body.split("<tr>")[1:])
    )
    table = f"{head.replace('<thead><tr>', '<thead><tr><th>keep</th>')}<tbody>{boxes}"
    total = sum(event.channel in quality.recording.columns for event in quality.events)
    title = f"{total:,} events" + (f", the {len(worst):,} worst" if total > len(worst) else "")
    hint = (
        "A click on a heading sorts. Check the events that are real and stay as measured, then "
        "save them and run sacm quality again with --keep keep.csv."
    )
    button = '<p><button id="keep" disabled>Save keep.csv</button></p>'
    return Section(title, (paragraph(hint, note=True), table, button)), script


def _in_script(value: Any) -> str:
    """A value as JavaScript that cannot end its element."""
    return json.dumps(value).replace("<", "\\u003c")


def _what_was_read(quality: Quality) -> Table:
    """What someone needs to check the page later: the source, how it was read, options, date."""
    recording = quality.recording
    size = f"{len(recording.values):,} rows of {len(recording.columns)} channels"
    rows: list[tuple[str, Any]] = [("data", recording.name), ("size", size)]
    for line in recording.understood:
        name, _, rest = line.partition(": ")
        rows.append((name.partition(" (")[0], rest) if rest else ("", line))
    if not recording.understood and recording.times is not None and len(recording.times):
        rows.append(
            ("time", f"{_second(recording.times.min())} to {_second(recording.times.max())}")
        )
    trained = sum(map(len, recording.train))
    rows += [
        ("thresholds from", f"{trained:,} rows"),
        ("false events", f"{quality.config.false_events:g} expected in 10,000 normal values"),
        ("written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by sacm {version('sacm')}"),
    ]
    return Table(("", "value"), tuple(rows), words=2)


def _second(time: np.datetime64) -> str:
    return str(time.astype("datetime64[s]")).replace("T", " ")


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
    """Draw every channel over time, flagged values in the colour of their kind.

    Args:
        quality: What was found.
        width: In inches.

    Returns:
        The figure; of many channels those with the most flags.
    """
    flagged = (quality.flags > 0).mean(axis=0)
    order = np.argsort(-flagged, kind="stable")[:_CHANNELS]
    if len(flagged) > _CHANNELS and flagged.any():
        order = order[flagged[order] > 0]
    shown = np.sort(order)
    with house_style():
        figure, axes = canvas(len(shown), height=0.8 + _ROW_HEIGHT * len(shown), width=width)
        for panel, channel in zip(axes, shown, strict=True):
            _draw_channel(panel, quality, int(channel), max(200, _POINTS // (2 * len(shown))))
        for panel in axes[:-1]:
            panel.set_xlabel("")
            panel.tick_params(labelbottom=False)
            panel.xaxis.get_offset_text().set_visible(False)
        occurring = {
            kind: COLOURS[kind]
            for code, kind in enumerate(KINDS)
            if code and (quality.flags == code).any()
        }
        if occurring:
            key(figure, {"as measured": MUTED, **occurring})
    return figure


def _draw_channel(axes: Axes, quality: Quality, channel: int, bins: int) -> None:
    values, flags = quality.recording.values[:, channel], quality.flags[:, channel]
    normal = np.where(flags > 0, np.nan, values)
    rows = thin_out_range(normal, bins)
    axes.plot(_positions(quality, rows), normal[rows], color=MUTED, linewidth=0.6)
    limits = _limits(normal, values[flags > 0])
    for code in np.unique(flags[flags > 0]):
        own = np.flatnonzero(flags == code)
        own = own[:: max(1, len(own) // bins)]
        where, colour = _positions(quality, own), COLOURS[KINDS[int(code)]]
        if code == MISSING:
            axes.plot(where, np.full(len(own), limits[0]), "|", markersize=7, color=colour)
        else:
            axes.plot(where, np.clip(values[own], *limits), ".", markersize=3.5, color=colour)
    axes.set_ylim(*limits)
    axes.set_title(plain(quality.recording.columns[channel]), fontsize=8, pad=3)
    axes.margins(x=0.01)
    number_axis(axes, 3)
    _date_axis(axes, quality)


def draw_event(quality: Quality, event: QualityEvent, *, width: float = 4.0) -> Figure:
    """Draw one event with what surrounds it, as measured and as repaired."""
    channel = quality.recording.columns.index(event.channel)
    margin = max(24, 2 * event.rows)
    segment = next(rows for rows in quality.recording.segments if event.first in rows)
    rows = np.arange(
        max(segment.start, event.first - margin), min(segment.stop, event.last + margin + 1)
    )
    measured, repaired = quality.recording.values[rows, channel], quality.values[rows, channel]
    flags, changed = quality.flags[rows, channel], quality.changed[rows, channel]
    unsure = quality.uncertainty[rows, channel]
    with house_style():
        figure, (axes,) = canvas(height=2.1, width=width)
        where = _positions(quality, rows)
        band: Any = {"color": KEPT, "alpha": 0.2, "linewidth": 0}
        axes.fill_between(where, repaired - unsure, repaired + unsure, where=changed, **band)
        axes.plot(where, np.where(changed, repaired, np.nan), color=KEPT, linewidth=1.4)
        limits = _limits(
            np.concatenate([repaired, measured[flags == 0]]), measured[flags > 0], room=10 * _ROOM
        )
        drawn = np.clip(measured, *limits)
        axes.plot(where, drawn, color=INK, linewidth=0.8)
        occurring = {}
        for code in np.unique(flags[flags > 0]):
            kind = KINDS[int(code)]
            occurring[kind] = COLOURS[kind]
            own = flags == code
            look: Any = {"color": COLOURS[kind], "markersize": 3.5}
            if code == MISSING:
                axes.plot(where[own], np.full(own.sum(), limits[0]), "|", **look)
            else:
                axes.plot(where, np.where(own, drawn, np.nan), marker=".", linewidth=1.2, **look)
        axes.set_ylim(*limits)
        axes.set_title(fill(plain(event.channel), 48))
        repairs = {"repaired": KEPT} if changed.any() else {}
        key(figure, {"as measured": INK, **occurring, **repairs})
        number_axis(axes, 5)
        _date_axis(axes, quality)
    return figure


def _limits(normal: np.ndarray, flagged: np.ndarray, *, room: float = _ROOM) -> tuple[float, float]:
    """Ends of an axis that shows flagged values too, unless they are very far from the others."""
    known = normal[np.isfinite(normal)]
    extreme = flagged[np.isfinite(flagged)]
    if not len(known):
        known = extreme if len(extreme) else np.zeros(1)
    low, high = float(known.min()), float(known.max())
    span = (high - low) or abs(high) or 1.0
    if len(extreme):
        low = max(min(low, float(extreme.min())), low - room * span)
        high = min(max(high, float(extreme.max())), high + room * span)
    margin = 0.06 * (high - low) or span
    return low - margin, high + margin


def _positions(quality: Quality, rows: np.ndarray) -> Any:
    """Times of the rows where they are known and rows lie in one series, else row numbers."""
    times = quality.recording.times
    alone = len(quality.recording.segments) == 1
    return rows + 1 if times is None or not alone else times[rows]


def _date_axis(axes: Axes, quality: Quality) -> None:
    """Label times or rows in as few letters as they need."""
    timed = quality.recording.times is not None and len(quality.recording.segments) == 1
    date_axis(axes, timed)
