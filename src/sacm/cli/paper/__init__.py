"""`sacm paper`: the paper's tables and figures by name, run as far as time allows."""

from __future__ import annotations

import typer

from sacm.cli.paper.figure import figure
from sacm.cli.paper.list import list_command
from sacm.cli.paper.report import report
from sacm.cli.paper.run import run
from sacm.cli.paper.summary import summary

HELP = """Run the paper's experiments and lay them beside it.

Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --budget 2h
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)
app.command("list")(list_command)
for command in (run, report, figure, summary):
    app.command()(command)
