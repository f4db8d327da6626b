"""`sacm strategies`: which strategies there are, and what each can be told."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import show_json

if TYPE_CHECKING:
    from sacm.strategies.registry import StrategyDescription


def strategies(as_json: AsJson = False) -> None:
    """All strategies with their options, defaults and what they mean.

    Example: sacm strategies
    """
    from sacm.strategies import mappers, scorers
    from sacm.strategies.registry import describe_all

    found = describe_all()
    if as_json:
        show_json(
            {
                "strategies": [asdict(each) for each in found],
                "scorers": scorers.names(),
                "mappers": mappers.names(),
            }
        )
        return
    show_strategies(found)
    typer.echo(f"Scorers: {', '.join(scorers.names())}. Mappers: {', '.join(mappers.names())}.")
    typer.echo(
        "Options go in brackets, as in sacm(p_max=0.3,detrend=none); strategies combine with +, "
        "as in selective+sacm."
    )


def show_strategies(found: list[StrategyDescription]) -> None:
    """Print one table a strategy; one without options is its sentence alone."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from sacm.strategies.registry import spell_value

    console = Console()
    for strategy in found:
        summary = escape(strategy.summary)
        console.print(f"[bold]{strategy.name}[/bold]  {summary}", highlight=False)
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for heading in ("option", "default", "takes", "meaning"):
            table.add_column(heading, no_wrap=heading in ("option", "default"))
        for option in strategy.options:
            default = "(needed)" if option.required else spell_value(option.default) or "(none)"
            table.add_row(option.name, escape(default), option.kind, escape(option.help))
        if strategy.options:
            console.print(table)
        else:
            console.print()
