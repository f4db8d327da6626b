"""`sacm backbones` and `sacm strategies`: what there is to choose from."""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import note, show_json, show_table, show_texts

_LEGEND = (
    "Parameters in both sizes with 7 channels, 96 steps, horizon 96, 5 classes; cost of a training "
    "step (paper, batch 32, one core): light < 0.3 s, medium < 1 s, heavy < 5 s, very heavy."
)


def backbones(as_json: AsJson = False) -> None:
    """All backbones with their tasks, sizes, dropout sites and cost on a CPU.

    Example: sacm backbones
    """
    from sacm.backbones import describe, names
    from sacm.types import TaskName

    described = [
        (describe(name, task, size="paper"), describe(name, task, size="small"))
        for task in get_args(TaskName)
        for name in names(task)
    ]
    if as_json:
        show_json([{**asdict(paper), "small": asdict(small)} for paper, small in described])
        return
    rows = [
        (p.name, p.task, p.cost, f"{p.parameters:,}", f"{small.parameters:,}", p.dropout_sites)
        for p, small in described
    ]
    title = f"{len({row[0] for row in rows})} backbones"
    show_table(("name", "task", "cost", "parameters", "small", "sites"), rows, title=title, words=3)
    note(_LEGEND)


def strategies(as_json: AsJson = False) -> None:
    """All strategies with their options, defaults and what they mean.

    Example: sacm strategies
    """
    from sacm.strategies import describe, mappers, names, scorers
    from sacm.strategies.registry import spell_value

    described = [describe(name) for name in names()]
    if as_json:
        records = [
            {**each._asdict(), "options": [option._asdict() for option in each.options]}
            for each in described
        ]
        parts = {"scorers": scorers.names(), "mappers": mappers.names()}
        show_json({"strategies": records, **parts})
        return
    for each in described:
        typer.echo(f"{each.name}: {each.summary}")
        rows = [
            (o.name, "(needed)" if o.default is None else spell_value(o.default), o.kind, o.help)
            for o in each.options
        ]
        if rows:
            show_texts(("option", "default", "takes", "meaning"), rows)
    typer.echo(f"Scorers: {', '.join(scorers.names())}. Mappers: {', '.join(mappers.names())}.")
    typer.echo("Options go in brackets, strategies combine with +: guard+sacm(p_max=0.3).")
