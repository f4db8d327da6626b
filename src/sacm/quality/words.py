"""What an inspection found, in words and as a text table."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sacm.quality.record import QualityEvent, QualityRecord
from sacm.reports.table import Table

PHRASES = {
    "missing": "missing",
    "code": "a code for a gap",
    "stuck": "stuck",
    "spike": "spikes",
    "burst": "in bursts of noise",
    "shift": "in stretches of another level",
    "range": "out of range",
    "clipped": "clipped at a limit",
}
_WORST = 5
_NAMED = 6


def format_share(share: float) -> str:
    """A share as text, with as many digits as it needs."""
    if share == 0:
        return ""
    if share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def describe_quality(quality: QualityRecord) -> list[str]:
    """The verdict, what could not be judged, and notes on the reading."""
    rows, channels = quality.flags.shape
    subject = quality.subject
    size = f"{rows:,} rows of {channels} channel{'s' if channels > 1 else ''}"
    if not quality.share:
        found = [f"{subject.name}: nothing broken was found in {size}."]
    else:
        counts = Counter(quality.flags[quality.flags > 0].tolist())
        shares = [(quality.kinds[code], n / quality.flags.size) for code, n in counts.most_common()]
        parts = [f"{format_share(share)} {PHRASES[kind]}" for kind, share in shares]
        found = [
            f"{subject.name}: {format_share(quality.share)} of the values in {size} look broken: "
            f"{', '.join(parts)}."
        ]
    return [*found, *_unjudged(quality), *subject.notes]


def _unjudged(quality: QualityRecord) -> list[str]:
    """One sentence for each reason why channels were not judged."""
    reasons: dict[str, list[str]] = {}
    for column, reason in quality.guard.unjudged_.items():
        reasons.setdefault(reason, []).append(repr(column))
    sentences = []
    for reason, columns in reasons.items():
        if len(columns) == 1:
            sentences.append(f"Channel {columns[0]} was not judged: {reason}.")
            continue
        more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
        names = ", ".join(columns[:_NAMED]) + more
        sentences.append(f"Channels {names} were not judged: {reason}.")
    return sentences


def share_table(quality: QualityRecord) -> Table:
    """Shares by channel and kind; clean channels have one row together."""
    shares = quality.shares()
    kinds = list(next(iter(shares.values()), {}))
    lines = []
    for column, own in shares.items():
        total = sum(own.values())
        if total:
            cells = (column, format_share(total), *(format_share(own[kind]) for kind in kinds))
            lines.append(cells)
    clean = sum(not sum(own.values()) for own in shares.values())
    if clean:
        name = f"{clean} channel{'s' if clean > 1 else ''} without a finding"
        lines.append((name, *("" for _ in ("all", *kinds))))
    return Table(("channel", "flagged", *kinds), tuple(lines))


def worst_events(quality: QualityRecord, count: int = _WORST) -> list[QualityEvent]:
    """The events that matter most: severe and long ones first, of different places."""

    def weight(event: QualityEvent) -> float:
        severity = event.severity if np.isfinite(event.severity) else 10.0
        return min(severity, 10.0) * float(np.sqrt(event.rows))

    return sorted(quality.events, key=weight, reverse=True)[:count]


def event_table(quality: QualityRecord, count: int = _WORST) -> Table:
    """The worst events, one row each."""
    lines = []
    for event in worst_events(quality, count):
        severity = f"{event.severity:.1f}" if np.isfinite(event.severity) else "unknown"
        first, last = str(event.first + 1), str(event.last + 1)
        if event.first_time is not None:
            first, last = _short(event.first_time), _short(event.last_time)
        cells = (event.channel, event.kind, first, last, f"{event.rows:,}", severity)
        lines.append(cells)
    headings = ("channel", "kind", "first", "last", "rows", "severity")
    return Table(headings, tuple(lines), words=4)


def summary_text(quality: QualityRecord) -> str:
    """Everything above as plain text, for a terminal of any width."""
    blocks = ["\n".join(describe_quality(quality))]
    if quality.share:
        blocks.append(share_table(quality).plain())
        total = len(quality.events)
        shown = min(total, _WORST)
        ending = f", the {shown} worst:" if total > shown else ":"
        title = ("1 event" if total == 1 else f"{total:,} events") + ending
        blocks.append(f"{title}\n{event_table(quality).plain()}")
    return "\n\n".join(blocks)


def _short(time: np.datetime64) -> str:
    """A time without the parts that are zero."""
    text = str(time.astype("datetime64[s]")).replace("T", " ")
    return text.removesuffix(" 00:00:00").removesuffix(":00")
