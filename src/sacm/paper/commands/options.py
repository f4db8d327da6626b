"""Which part of an experiment's grid the user asks for, and for how long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.experiments.words import split_names
from sacm.cli.options import whole_numbers
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import Experiment

Name = Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`.")]
Datasets = Annotated[str, typer.Option(help="Data sets, separated by commas. Default: all.")]
Backbones = Annotated[str, typer.Option(help="Backbones, separated by commas. Default: all.")]
Horizons = Annotated[str, typer.Option(help="Horizons, separated by commas. Default: all.")]
Seeds = Annotated[str, typer.Option(help="Seeds, separated by commas. Default: the paper's.")]
Small = Annotated[
    str, typer.Option(help="Backbones to use in their small size, separated by commas.")
]
Epochs = Annotated[int | None, typer.Option(help="At most so many epochs, instead of 100.", min=1)]
Stride = Annotated[
    int | None,
    typer.Option(help="Rows between two training windows; for anomaly between all windows.", min=1),
]
Score = Annotated[str | None, typer.Option(help="Anomaly score: native or reconstruction.")]
Runs = Annotated[Path, typer.Option(help="Folder that holds the runs.")]


def make_selection(
    experiment: Experiment,
    *,
    datasets: str,
    backbones: str,
    horizons: str,
    seeds: str,
    sizes: tuple[str, ...],
    small: str,
    epochs: int | None,
    stride: int | None,
    score: str | None,
) -> Selection:
    """Checked against what the experiment has."""
    from sacm.experiments.grid_points import Selection
    from sacm.experiments.named.experiment import choose_names

    for size in sizes:
        if size not in ("paper", "small"):
            raise ArgumentError(f"--size {size!r}: use paper or small.")
    settings: dict[str, Any] = {"epochs": epochs, "stride": stride, "score": score}
    named = split_names(small)
    return Selection(
        datasets=split_names(datasets),
        backbones=split_names(backbones),
        horizons=whole_numbers(horizons, "--horizons"),
        seeds=whole_numbers(seeds, "--seeds"),
        sizes=sizes,
        small=choose_names(experiment.backbones, named, "backbone", experiment) if named else (),
        settings={name: value for name, value in settings.items() if value is not None},
    )
