"""What a protocol found, in the format that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from sacm.display.latex import escape
from sacm.errors import ArgumentError
from sacm.files import write_atomically
from sacm.reports.named.csv_rows import flat_csv
from sacm_lab.robust.examples import Example
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.headline import robust_headline
from sacm_lab.robust.page import robust_page
from sacm_lab.robust.tables import report_tables

Format = Literal["md", "latex", "csv", "html"]
_PAGE_LINES = 42  # of a LaTeX table; a float cannot break across pages


def render_protocol(
    found: RobustFindings, format: Format, *, examples: dict[str, Example] | None = None
) -> str:
    """Findings as text; the CSV is the plain data of every run.

    Args:
        found: What the runs say.
        format: md, latex, csv or html.
        examples: One window under every fault, for the page.

    Raises:
        ArgumentError: There is no such format.
    """
    if format == "csv":
        return flat_csv(found.findings)
    if format == "md":
        return _markdown(found)
    if format == "latex":
        return _latex(found)
    if format == "html":
        return robust_page(found, examples)
    raise ArgumentError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}.")


def write_protocol_report(
    found: RobustFindings,
    path: Path,
    *,
    format: Format,
    examples: dict[str, Example] | None = None,
) -> None:
    """Write the report; the file is either whole or not there."""
    text = render_protocol(found, format, examples=examples)
    # CSV brings its own line ends.
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8", newline=""))


def _markdown(found: RobustFindings) -> str:
    findings = found.findings
    parts = [f"# {findings.name}: {findings.title}", *robust_headline(found)]
    for table, legend in report_tables(found):
        parts += [f"**{table.caption}**", table.markdown(), *legend]
    if findings.notes:
        parts += ["**How it was done**", "\n".join(f"- {note}" for note in findings.notes)]
    return "\n\n".join(parts) + "\n"


def _latex(found: RobustFindings) -> str:
    said = [*robust_headline(found), *found.findings.notes]
    parts = ["% needs \\usepackage{booktabs}", "\n".join(f"% {one}" for one in said)]
    for table, legend in report_tables(found):
        pieces = [piece.latex() for piece in table.pieces(_PAGE_LINES)]
        parts += [*pieces, *(rf"\par\noindent{{\footnotesize {escape(one)}}}" for one in legend)]
    return "\n\n".join(parts) + "\n"
