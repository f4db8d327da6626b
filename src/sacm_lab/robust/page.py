"""What a protocol found as one HTML page."""

from __future__ import annotations

from sacm.display.html_page import Section, embed_figure, page, paragraph
from sacm.reports.named.diagram import rank_caption, rank_diagram
from sacm_lab.robust.examples import SEVERITY, Example, draw_examples
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.gain_figure import gain_caption, gain_figure
from sacm_lab.robust.headline import robust_headline
from sacm_lab.robust.heat import LEGEND, STYLE, heat_map
from sacm_lab.robust.tables import report_tables

_STYLE = (
    ".gains svg{max-width:46rem}.ranks svg{min-width:30rem;max-width:46rem}main{max-width:74rem}"
)


def robust_page(found: RobustFindings, examples: dict[str, Example] | None = None) -> str:
    """Make the HTML page of a protocol.

    Args:
        found: What the runs say.
        examples: One window under every fault, from `make_examples`; None leaves them out.

    Returns:
        A page that loads nothing from elsewhere.
    """
    findings = found.findings
    gains = embed_figure(gain_figure(found), gain_caption(found), name="gains")
    sections = [
        Section("What each strategy gains", (f'<div class="gains">{gains}</div>',)),
        Section("Strategies by faults", (heat_map(findings), paragraph(LEGEND, note=True))),
    ]
    if findings.ranks is not None:
        caption = rank_caption(findings.ranks)
        drawn = embed_figure(rank_diagram(findings.ranks), caption, name="ranks")
        sections.append(
            Section("Ranks of the strategies", (f'<div class="wide ranks">{drawn}</div>',))
        )
    if examples:
        caption = (
            f"The middle test window with faults of severity {SEVERITY:g}, in the channel that "
            "each fault changes most, as z-scores; forecasts of raw, and of the same network "
            "behind a window guard, without retraining."
        )
        drawn = embed_figure(draw_examples(examples), caption, name="examples")
        sections.append(
            Section("One window under each fault", (f'<div class="examples">{drawn}</div>',))
        )
    for table, legend in report_tables(found):
        parts = (table.html(), *(paragraph(one, note=True) for one in legend))
        sections.append(Section(table.caption or "What was run", parts))
    sections.append(Section("How it was done", tuple(map(paragraph, findings.notes))))
    title = f"{findings.name}: {findings.title}"
    return page(title, robust_headline(found), sections, style=STYLE + _STYLE)
