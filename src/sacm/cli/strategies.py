"""`sacm strategies`: which strategies there are, and what each can be told."""

from __future__ import annotations

from dataclasses import asdict

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import show_json, show_texts


def strategies(as_json: AsJson = False) -> None:
    """All strategies with their options, defaults and what they mean.

    Example: sacm strategies
    """
    from sacm.strategies import mappers, scorers
    from sacm.strategies.registry import describe_all, spell_value

    described = describe_all()
    if as_json:
        show_json(
            {
                "strategies": [asdict(each) for each in described],
                "scorers": scorers.names(),
                "mappers": mappers.names(),
            }
        )
        return
    for strategy in described:
        typer.echo(f"{strategy.name}: {strategy.summary}")
        rows = []
        for option in strategy.options:
            default = "(needed)" if option.required else spell_value(option.default) or "(none)"
            rows.append((option.name, default, option.kind, option.help))
        if rows:
            show_texts(("option", "default", "takes", "meaning"), rows)
        else:
            typer.echo()
    typer.echo(f"Scorers: {', '.join(scorers.names())}. Mappers: {', '.join(mappers.names())}.")
    typer.echo(
        "Options go in brackets, as in sacm(p_max=0.3,detrend=none); strategies combine with +, "
        "as in selective+sacm."
    )
