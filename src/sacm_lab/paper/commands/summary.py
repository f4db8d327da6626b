"""`sacm paper summary`: every experiment in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.experiments.findings import read_results
from sacm.errors import ArgumentError


def summary(
    results: Annotated[Path, typer.Option(help="A folder of findings as JSON.")] = Path("results"),
    into: Annotated[
        Path | None, typer.Option(help="Replace the results table of this markdown file.")
    ] = None,
) -> None:
    """One line an experiment: coverage, gain, significance, and the paper's gain.

    Example: sacm paper summary --results results --into docs/results.md
    """
    from rich.console import Console

    from sacm.cli.runs import as_user_error
    from sacm.display.terminal_table import print_table
    from sacm.reports.named.summary import NARROW, summary_table, write_summary

    found = [read_results(path, path.stem) for path in sorted(results.glob("*.json"))]
    if not found:
        raise ArgumentError(f"{results} holds no findings: make some with sacm paper report.")
    if into is not None:
        with as_user_error():
            write_summary(found, into)
        typer.echo(f"written to {into}")
        return
    print_table(Console(), summary_table(found).only(NARROW))
