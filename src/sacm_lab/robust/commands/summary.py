"""`sacm robust summary`: every protocol in a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def summary(
    results: Annotated[
        Path,
        typer.Option(help="A folder of findings as JSON; those of one protocol count as one."),
    ] = Path("results/robust"),
    into: Annotated[
        Path | None, typer.Option(help="Replace the robustness table of this markdown file.")
    ] = None,
) -> None:
    """One line a strategy and protocol: what it wins against raw, and what it costs.

    Example: sacm robust summary --results results/robust --into docs/robustness.md
    """
    from rich.console import Console

    from sacm.cli.runs import as_user_error
    from sacm.display.terminal_table import print_table
    from sacm_lab.robust.join import read_protocols
    from sacm_lab.robust.summary import NARROW, protocol_summary_table, write_protocol_summary

    with as_user_error():
        found = read_protocols(results)
        if into is not None:
            write_protocol_summary(found, into)
            typer.echo(f"written to {into}")
            return
    print_table(Console(), protocol_summary_table(found).only(NARROW))
