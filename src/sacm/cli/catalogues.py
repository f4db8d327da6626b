"""`sacm backbones` and `sacm strategies`: what there is to choose from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, get_args

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
    pairs = [
        (describe(name, each), describe(name, each, size="small"))
        for each in get_args(TaskName)
        if task in (None, each)
        for name in names(each)
    ]
    if as_json:
        records = []
        for paper, small in pairs:
            record: dict[str, Any] = {"name": paper.name, "task": paper.task, "cost": paper.cost}
            record |= {"reference": paper.reference, "takes": list(paper.takes)}
            record["sizes"] = {
                each.size: {
                    "parameters": each.parameters,
                    "dropout_sites": each.dropout_sites,
                    "settings": asdict(each.config),
                }
                for each in (paper, small)
            }
            records.append(record)
        show_json(records)
        return
    rows = []
    for paper, small in pairs:
        sizes = f"{paper.parameters:,}", f"{small.parameters:,}"
        rows.append((paper.name, paper.task, paper.cost, *sizes, paper.dropout_sites))
    title = f"{len({paper.name for paper, _ in pairs})} backbones"
    show_table(("name", "task", "cost", "parameters", "small", "sites"), rows, title=title, words=3)
    note(_LEGEND)


def strategies(as_json: AsJson = False) -> None:
    """All strategies with their options, defaults and what they mean.

    Example: sacm strategies
    """
    from sacm.strategies import mappers, scorers
    from sacm.strategies.registry import describe_all, spell_value

    described = describe_all()
    if as_json:
        parts = {"scorers": scorers.names(), "mappers": mappers.names()}
        show_json({"strategies": [asdict(each) for each in described], **parts})
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
