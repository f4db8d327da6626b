"""`sacm backbones`: which networks there are, for which tasks, and how big."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from sacm.cli.options import AsJson
from sacm.cli.output import show_json

if TYPE_CHECKING:
    from sacm.backbones import Description


def backbones(
    task: Annotated[
        str | None, typer.Option(help="forecasting, classification or anomaly.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """All backbones with their tasks, sizes, dropout sites and cost on a CPU.

    Example: sacm backbones --task forecasting
    """
    found = descriptions(task)
    if as_json:
        show_json([describe_backbone(paper, small) for paper, small in found])
    else:
        show_backbones(found)


def descriptions(task: str | None) -> list[tuple[Description, Description]]:
    """Every backbone of a task (or of all), at paper size and small."""
    from sacm.backbones import describe, names
    from sacm.backbones.registry import check_task
    from sacm.types import TaskName

    if task is not None:
        check_task(task)
    return [
        (describe(name, each), describe(name, each, size="small"))
        for each in get_args(TaskName)
        if task in (None, each)
        for name in names(each)
    ]


def show_backbones(found: list[tuple[Description, Description]]) -> None:
    """Print the table."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    title = f"{len({paper.name for paper, _ in found})} backbones"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "task", "parameters", "small", "sites", "cost", "takes"):
        numeric = heading in ("parameters", "small", "sites")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for paper, small in found:
        table.add_row(
            paper.name,
            paper.task,
            f"{paper.parameters:,}",
            f"{small.parameters:,}",
            str(paper.dropout_sites),
            paper.cost,
            ", ".join(paper.takes),
        )
    console = Console()
    console.print(table)
    console.print(
        "Trainable parameters at size=paper and size=small with 7 channels, 96 steps (anomaly: "
        "100), horizon 96, 5 classes; dropout sites; cost of a training step at size=paper, batch "
        "32, one CPU core: light below 0.3 s, medium below 1 s, heavy below 5 s, very heavy above; "
        "what it takes besides windows (an adapter gives covariates to networks that take none).",
        highlight=False,
    )


def describe_backbone(paper: Description, small: Description) -> dict[str, Any]:
    """One backbone as plain values."""
    return {
        "name": paper.name,
        "task": paper.task,
        "cost": paper.cost,
        "reference": paper.reference,
        "takes": list(paper.takes),
        "sizes": {
            each.size: {
                "parameters": each.parameters,
                "dropout_sites": each.dropout_sites,
                "settings": asdict(each.config),
            }
            for each in (paper, small)
        },
    }
