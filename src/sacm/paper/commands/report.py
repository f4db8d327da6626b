"""`sacm paper report`: what finished runs say, beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.experiments.findings import find_groups, read_results, tabulate_with_notes
from sacm.cli.experiments.output import FORMATS, deliver
from sacm.cli.experiments.words import check_runs
from sacm.errors import ArgumentError
from sacm.paper.commands import options as ask


def report(
    name: ask.Name,
    datasets: ask.Datasets = "",
    backbones: ask.Backbones = "",
    horizons: ask.Horizons = "",
    seeds: ask.Seeds = "",
    size: Annotated[str, typer.Option(help="paper or small. Default: whichever was run.")] = "",
    small: ask.Small = "",
    epochs: ask.Epochs = None,
    stride: ask.Stride = None,
    score: ask.Score = None,
    style: Annotated[
        str, typer.Option("--format", help="table, md, latex, csv, json or html.")
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Without training curves (html, json) or rows (md, latex)."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Read findings from this JSON file (or folder of them), not from runs."),
    ] = None,
    runs: ask.Runs = Path("runs"),
) -> None:
    """What the finished runs of an experiment say, beside the paper's numbers.

    Example: sacm paper report real_forecasting --datasets ILI --format html --out ili.html
    """
    from sacm.paper.experiments.catalogue import find

    if style not in FORMATS:
        raise ArgumentError(f"--format {style!r}: use {', '.join(FORMATS)}.")
    experiment = find(name)
    if results is not None:
        if any((datasets, backbones, horizons, seeds, size, small, epochs, stride, score)):
            raise ArgumentError(
                "--results shows findings as they were written: leave out what narrows them."
            )
        findings = read_results(results, name)
        if findings.name != name:
            raise ArgumentError(f"{results} holds findings of {findings.name}, not of {name}.")
    else:
        selection = ask.make_selection(
            experiment,
            datasets=datasets,
            backbones=backbones,
            horizons=horizons,
            seeds=seeds,
            sizes=(size,) if size else ("paper", "small"),
            small=small,
            epochs=epochs,
            stride=stride,
            score=score,
        )
        check_runs(runs)
        groups = find_groups(experiment, selection, runs)
        findings = tabulate_with_notes(experiment, selection, groups, runs)
    deliver(findings, style, out, brief=brief)
