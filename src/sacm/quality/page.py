"""One self-contained page on the quality of a table."""

from __future__ import annotations

from sacm.quality.figures import draw_event, draw_overview
from sacm.quality.record import QualityEvent, QualityRecord
from sacm.quality.words import (
    describe_quality,
    event_table,
    format_share,
    share_table,
    worst_events,
)
from sacm.reports.page import Section, code_block, embed_figure, figures, page, paragraph

_ENLARGED = 8
_LISTED = 40
_STYLE = ".overview svg{max-width:none}"


def quality_page(quality: QualityRecord) -> str:
    """The HTML document: verdict, overview, worst events, shares, and what training would see.

    Args:
        quality: What was found.

    Returns:
        A page that loads nothing from elsewhere.
    """
    verdict, *notes = describe_quality(quality)
    overview = embed_figure(draw_overview(quality), "All channels over time", name="overview")
    sections = [
        Section("Overview", (f'<div class="overview">{overview}</div>', *map(paragraph, notes)))
    ]
    worst = worst_events(quality, _ENLARGED)
    if worst:
        drawn = [
            embed_figure(draw_event(quality, event), _caption(event), name=f"event-{number}")
            for number, event in enumerate(worst)
        ]
        sections += [
            Section("The worst, enlarged", (figures(*drawn),)),
            Section("Shares by channel", (share_table(quality).html(),)),
            Section(_events_title(quality), (event_table(quality, _LISTED).html(),)),
        ]
    sections.append(Section("What training would see", tuple(map(paragraph, _effects(quality)))))
    sections.append(Section("In Python", (code_block(_snippet(quality)),)))
    return page(f"Quality of {quality.subject.name}", [verdict], sections, style=_STYLE)


def _caption(event: QualityEvent) -> str:
    first, last = event.first + 1, event.last + 1
    rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"
    return f"{event.channel}, {rows}: {event.kind}"


def _events_title(quality: QualityRecord) -> str:
    total = len(quality.events)
    return f"{total:,} events" + (f", the {_LISTED} worst" if total > _LISTED else "")


def _effects(quality: QualityRecord) -> list[str]:
    if not quality.share:
        return ["Nothing would change: no value is repaired, every value counts in full."]
    trusted = float(quality.weights[quality.flags > 0].mean())
    return [
        f"{format_share(quality.share)} of the values would be replaced by their repair before a "
        f"network sees them. As targets they would count {100 * trusted:.0f} % on average: the "
        "more uncertain a repair, the less it counts.",
        "Every other value stays exactly as it is.",
    ]


def _snippet(quality: QualityRecord) -> str:
    return (
        f"quality = sacm.inspect(data, sensitivity={quality.guard.sensitivity:g})\n"
        "quality.repaired    # the data, repaired, in the form in which they came\n"
        "quality.weights     # [T, C]: how far to trust each value"
    )
