"""`sacm robust run`: what is not yet there of a protocol, resumable and within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.options import AsJson
from sacm.robust.commands import options as ask


def run(
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
    budget: Annotated[
        str, typer.Option(help="Begin no group that would not end in time: 2h, 90m …")
    ] = "",
    workers: Annotated[int, typer.Option(help="Runs at once.", min=1)] = 1,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Only show what would be run, and for how long.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="With --plan: measure costs that are not known.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what failed by itself.")
    ] = False,
    runs: ask.Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run what is not yet there of a protocol, the cheapest groups first.

    Stop it at any time; run it again and it goes on.

    Example: sacm robust run T --data ETTh1 --strategies raw,guard,sacm --seeds 1,2,3
    """
    from sacm.cli.experiments.output import show_plan
    from sacm.cli.experiments.words import duration
    from sacm.cli.experiments.work import make_plan_with_progress, work
    from sacm.cli.output import note
    from sacm.cli.runs import check_writable
    from sacm.experiments.engines import make_engine
    from sacm.robust.commands.output import show_protocol_findings
    from sacm.robust.gather import find_protocol_groups, gather

    (experiment, unknown), selection = ask.choose_part(
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
    seconds = duration(budget) if budget else None
    chosen_engine = make_engine(engine, workers=workers)
    check_writable(runs)
    if unknown:
        note(f"Note: not registered, so left out: {', '.join(unknown)}.")
    groups = find_protocol_groups(experiment, selection, runs)
    plan = make_plan_with_progress(
        groups,
        runs,
        workers=workers,
        retry_failed=retry_failed,
        together=False,
        measure=measure or not plan_only,
    )
    if plan_only:
        show_plan(plan, workers=workers, as_json=as_json)
        return
    failed = work(plan, chosen_engine, runs, workers=workers, budget=seconds, quiet=as_json)
    show_protocol_findings(gather(experiment, selection, groups, runs), as_json=as_json)
    if failed:
        raise typer.Exit(1)
