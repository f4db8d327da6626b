"""Findings in the format that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from sacm.display.latex import escape
from sacm.display.text_table import TextTable
from sacm.errors import ArgumentError
from sacm.experiments.named.findings import Findings
from sacm.files import write_atomically
from sacm.reports.compare_tables import ANOMALY_LEGEND
from sacm.reports.named.csv_rows import flat_csv
from sacm.reports.named.diagram import rank_caption
from sacm.reports.named.headline import experiment_headline
from sacm.reports.named.interactive import interactive_page
from sacm.reports.named.tables import (
    OVERALL_LEGEND,
    coverage_table,
    failure_table,
    overall_table,
    rank_table,
    result_legend,
    result_table,
)

Format = Literal["md", "latex", "csv", "html"]

_PAGE_LINES = 42  # of a LaTeX table; a float cannot break across pages


def render(findings: Findings, format: Format, *, detail: bool = True) -> str:
    """Findings as text; without `detail` no rows (md, latex) and no training curves (html).

    The CSV is always the plain data: one line for each group, strategy and metric.
    """
    writers: dict[Format, Callable[[], str]] = {
        "md": lambda: _markdown(findings, detail=detail),
        "latex": lambda: _latex(findings, detail=detail),
        "csv": lambda: flat_csv(findings),
        "html": lambda: interactive_page(findings, detail=detail),
    }
    if format not in writers:
        raise ArgumentError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}.")
    return writers[format]()


def write_report(
    findings: Findings, path: str | Path, *, format: Format, detail: bool = True
) -> None:
    """Write the report; the file is either whole or not there."""
    text = render(findings, format, detail=detail)
    # CSV brings its own line ends.
    write_atomically(Path(path), lambda file: file.write_text(text, encoding="utf-8", newline=""))


def _markdown(findings: Findings, *, detail: bool) -> str:
    parts = [f"# {_line(findings.title)}", _line(findings.where), *experiment_headline(findings)]
    for table, legend in _tables(findings, detail=detail):
        parts += [f"**{_line(table.caption)}**", table.markdown(), *legend]
    if findings.notes:
        parts += ["**What departs from the paper**"]
        parts.append("\n".join(f"- {_line(note)}" for note in findings.notes))
    return "\n\n".join(parts) + "\n"


def _latex(findings: Findings, *, detail: bool) -> str:
    said = [*experiment_headline(findings), *findings.notes]
    parts = ["% needs \\usepackage{booktabs}", "\n".join(f"% {_line(one)}" for one in said)]
    for table, legend in _tables(findings, detail=detail):
        pieces = [piece.latex() for piece in table.pieces(_PAGE_LINES)]
        parts += [*pieces, *(rf"\par\noindent{{\footnotesize {escape(one)}}}" for one in legend)]
    return "\n\n".join(parts) + "\n"


def _tables(findings: Findings, *, detail: bool) -> list[tuple[TextTable, tuple[str, ...]]]:
    found: list[tuple[TextTable, tuple[str, ...]]] = []
    if findings.overall:
        adjusted = (ANOMALY_LEGEND,) if findings.task == "anomaly" else ()
        found.append((overall_table(findings), (OVERALL_LEGEND, *adjusted)))
    if detail and findings.rows:
        found.append((result_table(findings), (result_legend(findings),)))
    if findings.ranks is not None:
        found.append((rank_table(findings.ranks), (rank_caption(findings.ranks),)))
    found.append((coverage_table(findings), ()))
    if findings.coverage.failed:
        found.append((failure_table(findings), ()))
    return found


def _line(text: str) -> str:
    return " ".join(text.split())
