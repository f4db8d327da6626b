"""Which part of an experiment's grid the user asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sacm.cli.experiments.words import split_names
from sacm.cli.options import whole_numbers
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import Experiment


class PaperPart(NamedTuple):
    """An experiment, and the part of its grid to look at."""

    experiment: Experiment
    selection: Selection
    named: tuple[str, ...]  # the options that narrow the grid and were given


def choose_paper_part(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`.")],
    datasets: Annotated[
        str, typer.Option(help="Data sets, separated by commas. Default: all.")
    ] = "",
    backbones: Annotated[
        str, typer.Option(help="Backbones, separated by commas. Default: all.")
    ] = "",
    horizons: Annotated[
        str, typer.Option(help="Horizons, separated by commas. Default: all.")
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="Seeds, separated by commas. Default: the paper's.")
    ] = "",
    size: Annotated[
        str,
        typer.Option(help="paper or small. Default: paper to run, whichever was run to report."),
    ] = "",
    small: Annotated[
        str, typer.Option(help="Backbones to use in their small size, separated by commas.")
    ] = "",
    epochs: Annotated[
        int | None, typer.Option(help="At most so many epochs, instead of 100.", min=1)
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            help="Rows between two training windows; for anomaly between all windows.", min=1
        ),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Anomaly score: native or reconstruction.")
    ] = None,
) -> PaperPart:
    """The experiment and the part of it that is asked for, checked against what it has."""
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import choose_names
    from sacm_lab.paper.experiments.catalogue import find

    experiment = find(name)
    if size not in ("", "paper", "small"):
        raise ArgumentError(f"--size {size!r}: use paper or small.")
    settings: dict[str, Any] = {"epochs": epochs, "stride": stride, "score": score}
    texts = {"datasets": datasets, "backbones": backbones, "horizons": horizons, "seeds": seeds}
    given = {**texts, "size": size, "small": small, **settings}
    chosen = split_names(small)
    selection = Selection(
        datasets=split_names(datasets),
        backbones=split_names(backbones),
        horizons=whole_numbers(horizons, "--horizons"),
        seeds=whole_numbers(seeds, "--seeds"),
        sizes=(size,) if size else ("paper", "small"),
        small=choose_names(experiment.backbones, chosen, "backbone", experiment) if chosen else (),
        settings={key: value for key, value in settings.items() if value is not None},
    )
    return PaperPart(experiment, selection, tuple(key for key, value in given.items() if value))
