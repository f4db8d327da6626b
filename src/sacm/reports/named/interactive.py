"""An experiment as one HTML file to explore; without a script its tables are still there."""

from __future__ import annotations

from importlib.resources import files

from sacm.display.html_page import Section, embed_figure, page, paragraph
from sacm.experiments.named.findings import Findings
from sacm.reports.compare_tables import ANOMALY_LEGEND
from sacm.reports.named import heatmap
from sacm.reports.named.diagram import rank_caption, rank_diagram
from sacm.reports.named.headline import experiment_headline
from sacm.reports.named.page_data import embed_json, pack_findings
from sacm.reports.named.tables import (
    OVERALL_LEGEND,
    coverage_table,
    failure_table,
    overall_table,
    result_legend,
    result_table,
)


def interactive_page(findings: Findings, *, detail: bool = True) -> str:
    """The page; without `detail` it has no training curves."""
    sections = [_map(findings), _overall(findings), _results(findings)]
    if findings.ranks is not None:
        caption = rank_caption(findings.ranks)
        drawn = embed_figure(rank_diagram(findings.ranks), caption, name="ranks")
        wide = f'<div class="wide ranks">{drawn}</div>'
        sections.append(Section("Ranks of the strategies", (wide,)))
    sections += [_coverage(findings), _departures(findings)]
    data = embed_json(pack_findings(findings, histories=detail))
    scripts = (
        f'<script type="application/json" id="data">{data}</script>',
        f"<script>{_asset('interactive.js')}</script>",
    )
    title = f"{findings.title} ({findings.where})"
    style = _asset("interactive.css")
    return page(title, experiment_headline(findings), sections, style=style, scripts=scripts)


def _map(findings: Findings) -> Section:
    title = "Gains" if findings.overall else "Values"
    if not findings.rows:
        return Section(title, (paragraph("There are no rows to show."),))
    maps = f'<div id="maps">{heatmap.heatmaps(findings)}</div>'
    legend = (heatmap.COLOURS if findings.overall else "") + heatmap.SIGNS
    return Section(title, (maps, paragraph(legend, note=True)))


def _overall(findings: Findings) -> Section:
    if not findings.overall:
        return Section("Overall", (paragraph("No strategy is measured by another here."),))
    parts = [overall_table(findings).html(), paragraph(OVERALL_LEGEND, note=True)]
    if findings.task == "anomaly":
        parts.append(paragraph(ANOMALY_LEGEND, note=True))
    return Section("Overall", tuple(parts))


def _results(findings: Findings) -> Section:
    table = f'<div id="results">{result_table(findings).html()}</div>'
    return Section("Every row", (table, paragraph(result_legend(findings), note=True)))


def _coverage(findings: Findings) -> Section:
    parts = [coverage_table(findings).html()]
    if findings.coverage.failed:
        parts.append(failure_table(findings).html(kind="failures"))
    return Section("What was run", tuple(parts))


def _departures(findings: Findings) -> Section:
    notes = findings.notes or ("Nothing is known to depart from the paper.",)
    return Section("What departs from the paper", tuple(map(paragraph, notes)))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
