"""`sacm robust`: who is robust: broken training data, faults at test, wrong labels."""

from __future__ import annotations

import typer

from sacm_lab.robust.commands.list import list_command
from sacm_lab.robust.commands.report import report
from sacm_lab.robust.commands.run import run
from sacm_lab.robust.commands.summary import summary

HELP = """Run the protocols of broken data and compare strategies on them.

Example: sacm robust run T --data ETTh1 --backbone iTransformer --seeds 1,2,3 --budget 2h
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)
app.command("list")(list_command)
for command in (run, report, summary):
    app.command()(command)
