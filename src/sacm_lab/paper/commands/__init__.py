"""`sacm paper`: the paper's tables and figures by name, run as far as time allows."""

from __future__ import annotations

import typer

from sacm_lab.paper.commands.figure import figure
from sacm_lab.paper.commands.list import list_command
from sacm_lab.paper.commands.report import report
from sacm_lab.paper.commands.run import run
from sacm_lab.paper.commands.summary import summary

HELP = """Run the paper's experiments and lay them beside it.

Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --budget 2h
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)
app.command("list")(list_command)
for command in (run, report, figure, summary):
    app.command()(command)
