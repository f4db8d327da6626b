"""Which part of a protocol the user asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import Experiment


class ProtocolPart(NamedTuple):
    """A protocol as it is asked for, and how its runs are made."""

    experiment: Experiment
    unknown: tuple[str, ...]  # strategies that are not registered
    selection: Selection


def choose_protocol_part(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See `sacm robust list`.")],
    data: Annotated[
        str, typer.Option(help="Data sets, separated by commas. Default: its own.")
    ] = "",
    backbone: Annotated[
        str, typer.Option(help="Backbones, separated by commas. Default: its own.")
    ] = "",
    strategies: Annotated[
        str,
        typer.Option(help="Strategies, separated by commas; raw is always there. Default: all."),
    ] = "",
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas. Default: 1 to 5.")] = "",
    kind: Annotated[
        str,
        typer.Option(
            help="Faults in the training data, separated by commas: `sacm corrupt --list`."
        ),
    ] = "",
    ratio: Annotated[
        str, typer.Option(help="Shares of the training data to break, by commas.")
    ] = "",
    references: Annotated[
        str,
        typer.Option(
            help="Rows beside the strategies, such as 'raw on clean', by commas, or none. "
            "Default: all."
        ),
    ] = "",
    horizons: Annotated[str, typer.Option(help="Horizons, separated by commas. Default: 96.")] = "",
    size: Annotated[str, typer.Option(help="small or paper.")] = "small",
    epochs: Annotated[int | None, typer.Option(help="At most so many epochs.", min=1)] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement.", min=1)] = None,
    rate: Annotated[float | None, typer.Option("--lr", help="Learning rate.")] = None,
    stride: Annotated[
        int | None, typer.Option(help="Rows between two training windows.", min=1)
    ] = None,
) -> ProtocolPart:
    """The protocol as it is asked for, and how its runs are made."""
    from sacm.cli.compare import split_strategies
    from sacm.cli.experiments.words import split_names
    from sacm.cli.options import whole_numbers
    from sacm.experiments.grid_points import Selection
    from sacm_lab.robust.choose import choose
    from sacm_lab.robust.protocols import PROTOCOLS

    if size not in ("paper", "small"):
        raise ArgumentError(f"--size {size!r}: use small or paper.")
    experiment, unknown = choose(
        PROTOCOLS.get(name),
        datasets=split_names(data),
        backbones=split_names(backbone),
        strategies=tuple(split_strategies(strategies)) if strategies else (),
        kinds=split_names(kind),
        ratios=_numbers(ratio),
        references=split_names(references),
    )
    if horizons:  # any that the data sets have, not only those of the protocol
        experiment = replace(experiment, horizons=())
    settings: dict[str, Any] = {
        "epochs": epochs,
        "patience": patience,
        "learning_rate": rate,
        "stride": stride,
    }
    selection = Selection(
        horizons=whole_numbers(horizons, "--horizons"),
        seeds=whole_numbers(seeds, "--seeds"),
        sizes=(size,),
        settings={key: value for key, value in settings.items() if value is not None},
    )
    return ProtocolPart(experiment, unknown, selection)


def _numbers(text: str) -> tuple[float, ...]:
    """`0.1,0.3` as numbers."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"--ratio {text!r}: expected numbers such as 0.1,0.3.") from None
