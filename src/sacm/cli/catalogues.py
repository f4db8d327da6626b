"""`sacm backbones` and `sacm strategies`: what there is to choose from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, get_args

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import note, show_json, show_table, show_texts

_LEGEND = (
    "Trainable parameters at size=paper and size=small with 7 channels, 96 steps (anomaly: 100), "
    "horizon 96, 5 classes; dropout sites; cost of a training step at size=paper, batch 32, one "
    "CPU core: light below 0.3 s, medium below 1 s, heavy below 5 s, very heavy above."
)


def backbones(
    task: Annotated[
        str | None, typer.Option(help="forecasting, classification or anomaly.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """All backbones with their tasks, sizes, dropout sites and cost on a CPU.

    Example: sacm backbones --task forecasting
    """
    from sacm.backbones import describe, names
    from sacm.backbones.registry import check_task
    from sacm.types import TaskName

    if task is not None:
        check_task(task)
    rows, records = [], []
    for each in get_args(TaskName):
        for name in names(each) if task in (None, each) else ():
            paper, small = (describe(name, each, size=size) for size in ("paper", "small"))
            counts = f"{paper.parameters:,}", f"{small.parameters:,}"
            rows.append((paper.name, each, paper.cost, *counts, paper.dropout_sites))
            sizes = {
                found.size: {
                    "parameters": found.parameters,
                    "dropout_sites": found.dropout_sites,
                    "settings": asdict(found.config),
                }
                for found in (paper, small)
            }
            record = {"name": paper.name, "task": each, "cost": paper.cost, "sizes": sizes}
            records.append({**record, "reference": paper.reference, "takes": list(paper.takes)})
    if as_json:
        show_json(records)
        return
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
        parts = {"scorers": scorers.names(), "mappers": mappers.names()}
        records = [
            {**each._asdict(), "options": [option._asdict() for option in each.options]}
            for each in described
        ]
        show_json({"strategies": records, **parts})
        return
    for strategy in described:
        typer.echo(f"{strategy.name}: {strategy.summary}")
        rows = [
            (o.name, "(needed)" if o.required else spell_value(o.default), o.kind, o.help)
            for o in strategy.options
        ]
        if rows:
            show_texts(("option", "default", "takes", "meaning"), rows)
        else:
            typer.echo()
    typer.echo(f"Scorers: {', '.join(scorers.names())}. Mappers: {', '.join(mappers.names())}.")
    typer.echo(
        "Options go in brackets, as in sacm(p_max=0.3,detrend=none); strategies combine with +, "
        "as in guard+sacm."
    )
