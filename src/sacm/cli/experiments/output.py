"""Plans and findings of named experiments, printed or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sacm.cli.experiments.words import format_duration
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.named.findings import Findings
    from sacm.experiments.plan import Plan

FORMATS = ("table", "md", "latex", "csv", "json", "html")


def show_plan(plan: Plan, *, workers: int, as_json: bool) -> None:
    """Runs done, failed and left by data and backbone, and how long the rest will take."""
    from sacm.cli.output import note, show_json, show_table

    rows: dict[tuple[str, str, str], list[float]] = {}
    bases: dict[tuple[str, str, str], dict[str, None]] = {}
    for one in plan.groups:
        keys = one.group.point.keys
        place = (str(keys["data"]), str(keys["backbone"]), one.group.size)
        row = rows.setdefault(place, [0, 0, 0, 0, 0])
        bases.setdefault(place, {}).update(dict.fromkeys(one.bases))
        states = [found.state for found in one.statuses]
        absent = len(one.group.point.strategies) if one.group.absent else 0
        changes = (states.count("done"), states.count("failed"), len(one.todo), absent)
        for position, change in enumerate((*changes, one.seconds)):
            row[position] += change
    counts = ("done", "failed", "to run", "no data")
    headings = ("data", "backbone", "size", *counts, "estimate", "by")
    by = {place: ", ".join(own) for place, own in bases.items()}
    if as_json:
        lines = [
            dict(zip(headings, (*key, *row, by[key]), strict=True)) for key, row in rows.items()
        ]
        total = {"runs": plan.jobs_left, "seconds": plan.seconds_left / workers}
        show_json({"groups": lines, "left": total})
        return
    body = [
        (*key, *(int(count) for count in row[:4]), format_duration(row[4]), by[key])
        for key, row in rows.items()
    ]
    show_table(headings, body, words=3)
    share = plan.seconds_left / workers
    note(f"{plan.jobs_left} runs to do, about {format_duration(share)} with {workers} at once.")
    if any("guess" in one.bases for one in plan.groups):
        note(
            "Times by guess are those of the same network on another machine and other data; "
            "--measure runs a few batches of each."
        )
    if any(one.group.absent for one in plan.groups):
        note("Runs without their data are left out: see `sacm data get`.")


def show_findings(findings: Findings, *, as_json: bool) -> None:
    """Tables and sentences for a person, or everything as JSON."""
    from rich.console import Console

    from sacm.cli.output import note, show_json
    from sacm.display.terminal_table import print_table
    from sacm.reports.named.headline import experiment_headline
    from sacm.reports.named.tables import narrow_overall_table, narrow_result_table

    if as_json:
        show_json(findings.to_dict())
        return
    console = Console()
    print_table(console, narrow_result_table(findings))
    print_table(console, narrow_overall_table(findings))
    for sentence in experiment_headline(findings):
        console.print(sentence, highlight=False, markup=False)
    for text in findings.notes:
        note(f"Note: {text}")


def deliver(findings: Findings, style: Any, out: Path | None, *, brief: bool) -> None:
    """Print a report, or write it to a file; `style` is one of FORMATS."""
    from sacm.cli.runs import as_user_error, check_writable
    from sacm.experiments.named.findings import without_curves
    from sacm.files import write_json
    from sacm.reports.named.render import render, write_report

    if out is not None:
        if out.is_dir():
            raise ArgumentError(f"--out {out} is a folder: name a file in it.")
        check_writable(out.parent)
        with as_user_error():
            if style == "json":
                write_json(out, (without_curves(findings) if brief else findings).to_dict())
            else:
                chosen: Any = "md" if style == "table" else style
                write_report(findings, out, format=chosen, detail=not brief)
        typer.echo(f"report: {out}")
    elif style in ("table", "json"):
        show_findings(without_curves(findings) if brief else findings, as_json=style == "json")
    else:
        typer.echo(render(findings, style, detail=not brief))
