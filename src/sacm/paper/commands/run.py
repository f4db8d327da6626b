"""`sacm paper run`: what is not yet there of an experiment, resumable and within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.experiments.findings import find_groups, tabulate_with_notes
from sacm.cli.experiments.output import show_findings, show_plan
from sacm.cli.experiments.words import duration
from sacm.cli.experiments.work import make_plan_with_progress, work
from sacm.cli.options import AsJson
from sacm.paper.commands import options as ask


def run(
    name: ask.Name,
    datasets: ask.Datasets = "",
    backbones: ask.Backbones = "",
    horizons: ask.Horizons = "",
    seeds: ask.Seeds = "",
    size: Annotated[str, typer.Option(help="paper or small.")] = "paper",
    small: ask.Small = "",
    epochs: ask.Epochs = None,
    stride: ask.Stride = None,
    score: ask.Score = None,
    budget: Annotated[
        str, typer.Option(help="Begin no pair that would not end in time: 2h, 90m …")
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
    """Run what is not yet there of an experiment, the cheapest pairs first.

    Stop it at any time; run it again and it goes on.

    Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --plan
    """
    from sacm.cli.runs import check_writable
    from sacm.experiments.engines import make_engine
    from sacm.paper.experiments.catalogue import find

    experiment = find(name)
    selection = ask.make_selection(
        experiment,
        datasets=datasets,
        backbones=backbones,
        horizons=horizons,
        seeds=seeds,
        sizes=(size,),
        small=small,
        epochs=epochs,
        stride=stride,
        score=score,
    )
    seconds = duration(budget) if budget else None
    chosen_engine = make_engine(engine, workers=workers)
    check_writable(runs)
    groups = find_groups(experiment, selection, runs)
    plan = make_plan_with_progress(
        groups,
        runs,
        workers=workers,
        retry_failed=retry_failed,
        measure=measure or not plan_only,
    )
    if plan_only:
        show_plan(plan, workers=workers, as_json=as_json)
        return
    failed = work(plan, chosen_engine, runs, workers=workers, budget=seconds, quiet=as_json)
    findings = tabulate_with_notes(experiment, selection, groups, runs)
    show_findings(findings, as_json=as_json)
    if failed:
        raise typer.Exit(1)
