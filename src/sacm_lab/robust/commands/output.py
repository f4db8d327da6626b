"""Findings of a protocol, printed or written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm_lab.robust.examples import Example
    from sacm_lab.robust.findings import RobustFindings


_SHOWN = 3  # metrics of a place on a terminal; the first are those that a protocol is about


def show_protocol_findings(found: RobustFindings, *, as_json: bool) -> None:
    """Tables and sentences for a person, or everything as JSON."""
    from rich.console import Console

    from sacm.cli.output import note, show_json
    from sacm.display.terminal_table import print_table
    from sacm_lab.robust.headline import robust_headline
    from sacm_lab.robust.summary import NARROW, protocol_summary_table
    from sacm_lab.robust.tables import means_table

    if as_json:
        show_json(drop_curves(found).to_dict())
        return
    console = Console()
    print_table(console, means_table(found.findings, most=_SHOWN))
    print_table(console, protocol_summary_table([found]).only(NARROW))
    for sentence in robust_headline(found):
        console.print(sentence, highlight=False, markup=False)
    for text in found.findings.notes:
        note(f"Note: {text}")
    note("Every metric, interval and place: --format md, html, latex or csv.")


def deliver_protocol(
    found: RobustFindings,
    style: Any,
    out: Path | None,
    *,
    examples: dict[str, Example] | None = None,
) -> None:
    """Print a report, or write it to a file; `style` is a format of reports."""
    from sacm.cli.runs import as_user_error, check_writable
    from sacm.files import write_json
    from sacm_lab.robust.render import render_protocol, write_protocol_report

    if out is None:
        if style in ("table", "json"):
            show_protocol_findings(found, as_json=style == "json")
        else:
            typer.echo(render_protocol(found, style, examples=examples))
        return
    if out.is_dir():
        raise ArgumentError(f"--out {out} is a folder: name a file in it.")
    check_writable(out.parent)
    with as_user_error():
        if style == "json":
            write_json(out, drop_curves(found).to_dict())
        else:
            chosen: Any = "md" if style == "table" else style
            write_protocol_report(found, out, format=chosen, examples=examples)
    typer.echo(f"report: {out}")


def drop_curves(found: RobustFindings) -> RobustFindings:
    """The same without what every epoch of every run was like."""
    from sacm.experiments.named.findings import without_curves as drop

    return replace(found, findings=drop(found.findings))
