"""`sacm robust report`: what finished runs of a protocol say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sacm.errors import ArgumentError, DataError
from sacm.robust.commands import options as ask
from sacm.robust.commands.output import FORMATS, deliver_protocol

if TYPE_CHECKING:
    from sacm.robust.findings import RobustFindings


def report(
    name: ask.Name,
    data: ask.Data = "",
    backbone: ask.Backbone = "",
    strategies: ask.Strategies = "",
    seeds: ask.Seeds = "",
    kind: ask.Kind = "",
    ratio: ask.Ratio = "",
    horizons: ask.Horizons = "",
    size: ask.Size = "small",
    epochs: ask.Epochs = None,
    patience: ask.Patience = None,
    rate: ask.Rate = None,
    stride: ask.Stride = None,
    style: Annotated[
        str, typer.Option("--format", help="table, md, latex, csv, json or html.")
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Read findings from this JSON file, or all of a folder, not from runs."),
    ] = None,
    runs: ask.Runs = Path("runs"),
) -> None:
    """What the finished runs of a protocol say.

    Example: sacm robust report T --data ETTh1 --format html --out t.html
    """
    from sacm.cli.experiments.words import check_runs
    from sacm.cli.runs import as_user_error
    from sacm.robust.examples import first_raw_run, make_examples
    from sacm.robust.gather import find_protocol_groups, gather
    from sacm.robust.join import read_protocols

    if style not in FORMATS:
        raise ArgumentError(f"--format {style!r}: use {', '.join(FORMATS)}.")
    (experiment, _), selection = ask.choose_part(
        name,
        data=data,
        backbone=backbone,
        strategies=strategies,
        seeds=seeds,
        kind=kind,
        ratio=ratio,
        horizons=horizons,
        size=size,
        epochs=epochs,
        patience=patience,
        rate=rate,
        stride=stride,
    )
    examples = None
    if results is not None:
        with as_user_error():
            found = _choose(read_protocols(results), experiment.name, results)
    else:
        check_runs(runs)
        groups = find_protocol_groups(experiment, selection, runs)
        found = gather(experiment, selection, groups, runs)
        raw = first_raw_run(groups, runs) if style == "html" else None
        examples = None if raw is None else make_examples(raw)
    deliver_protocol(found, style, out, examples=examples)


def _choose(found: list[RobustFindings], name: str, where: Path) -> RobustFindings:
    """The findings of one protocol."""
    for one in found:
        if one.findings.name == name:
            return one
    held = ", ".join(one.findings.name for one in found)
    raise DataError(f"{where} holds findings of {held}, none of {name}.")
