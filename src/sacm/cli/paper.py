"""`sacm paper`: the paper's tables and figures by name, run as far as time allows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import paper_options as ask
from sacm.cli.options import AsJson
from sacm.cli.paper_output import FORMATS, deliver, show_findings, show_plan
from sacm.errors import ArgumentError, SACMError, SACMWarning

if TYPE_CHECKING:
    from sacm.experiments.engines import Outcome
    from sacm.experiments.grid import JobGroup
    from sacm.experiments.paper.experiment import Experiment
    from sacm.experiments.paper.findings import Findings
    from sacm.experiments.plan import Plan
    from sacm.experiments.points import Selection

HELP = """Run the paper's experiments and lay them beside it.

Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --budget 2h
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)


@app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """The experiments and figures there are.

    Example: sacm paper list
    """
    from rich.console import Console

    from sacm.cli.output import make_table, show_json
    from sacm.experiments.paper.catalogue import EXPERIMENTS
    from sacm.reports import gallery

    drawings = [(name, gallery.describe(name)) for name in gallery.names()]
    if as_json:
        experiments = [
            {"name": one.name, "title": one.title, "where": one.where, "task": one.task}
            for one in EXPERIMENTS.values()
        ]
        figures = [{"name": name, "title": title} for name, title in drawings]
        show_json({"experiments": experiments, "figures": figures})
        return
    console = Console()
    rows = [(one.name, one.title, one.where) for one in EXPERIMENTS.values()]
    console.print(make_table(("experiment", "what", "where"), rows, text=True))
    console.print(make_table(("figure", "what"), drawings, text=True))


@app.command()
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
    from sacm.experiments.paper.catalogue import find

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
    seconds = ask.duration(budget) if budget else None
    chosen_engine = make_engine(engine, workers=workers)
    check_writable(runs)
    groups = find_groups(experiment, selection, runs)
    plan = planned(groups, runs, workers=workers, retry_failed=retry_failed)
    if plan_only:
        show_plan(plan, workers=workers, as_json=as_json)
        return
    failed = work(plan, chosen_engine, runs, workers=workers, budget=seconds, quiet=as_json)
    findings = tabulated(experiment, selection, groups, runs)
    show_findings(findings, as_json=as_json)
    if failed:
        raise typer.Exit(1)


@app.command()
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
    from sacm.experiments.paper.catalogue import find

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
        findings = tabulated(experiment, selection, groups, runs)
    deliver(findings, style, out, brief=brief)


@app.command()
def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`; or all.")],
    out: Annotated[Path, typer.Option(help="A PNG file, or a folder for all.")] = Path("figures"),
    runs: ask.Runs = Path("runs"),
) -> None:
    """Draw a figure of the paper from data, or from finished runs.

    Example: sacm paper figure detrending --out detrending.png
    """
    from sacm.cli.output import note
    from sacm.cli.runs import check_writable, users_to_mend
    from sacm.reports import gallery

    with warnings.catch_warnings():
        # Of damaged runs, each once, however many figures leave it out.
        warnings.simplefilter("default", SACMWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"Note: {message}")
        if name == "all":
            check_writable(out)
            if not draw_all(out, runs):
                raise typer.Exit(1)
            return
        path = out if out.suffix else out / f"{name}.png"
        if path.suffix.lower() != ".png":
            raise ArgumentError(f"--out {out}: figures are written to .png files.")
        check_writable(path.parent)
        with users_to_mend():
            gallery.save(name, path, runs=runs)
        typer.echo(f"figure: {path}")


def draw_all(out: Path, runs: Path) -> int:
    """Draw every figure that can be drawn; how many those are."""
    from sacm.cli.output import note
    from sacm.reports import gallery

    drawn = 0
    for name in gallery.names():
        path = out / f"{name}.png"
        try:
            gallery.save(name, path, runs=runs)
        except SACMError as error:
            note(f"{name}: {error}")
        else:
            typer.echo(f"figure: {path}")
            drawn += 1
    return drawn


@app.command()
def summary(
    results: Annotated[Path, typer.Option(help="A folder of findings as JSON.")] = Path("results"),
    into: Annotated[
        Path | None, typer.Option(help="Replace the results table of this markdown file.")
    ] = None,
) -> None:
    """One line an experiment: coverage, gain, significance, and the paper's gain.

    Example: sacm paper summary --results results --into README.md
    """
    from rich.console import Console

    from sacm.cli.runs import users_to_mend
    from sacm.reports.paper.summary import NARROW, summary_table, write_summary

    found = [read_results(path, path.stem) for path in sorted(results.glob("*.json"))]
    if not found:
        raise ArgumentError(f"{results} holds no findings: make some with sacm paper report.")
    if into is not None:
        with users_to_mend():
            write_summary(found, into)
        typer.echo(f"written to {into}")
        return
    Console().print(summary_table(found).only(NARROW).rich())


def find_groups(experiment: Experiment, selection: Selection, runs: Path) -> list[JobGroup]:
    """The selected part of the grid, with its jobs."""
    from sacm.experiments.grid import Grid
    from sacm.experiments.paper.experiment import points

    return Grid(selection, runs).groups(points(experiment, selection))


def planned(groups: Sequence[JobGroup], runs: Path, *, workers: int, retry_failed: bool) -> Plan:
    """What is left, with a bar while step costs are measured."""
    from tqdm import tqdm

    from sacm.experiments.plan import make_plan

    with tqdm(total=len(groups), desc="planning", unit="group", leave=False) as bar:
        return make_plan(
            groups,
            runs,
            workers=workers,
            retry_failed=retry_failed,
            on_group=lambda _: bar.update(),
        )


def work(
    plan: Plan, engine: Any, runs: Path, *, workers: int, budget: float | None, quiet: bool
) -> int:
    """Run the plan with a bar; how many runs failed."""
    from tqdm import tqdm

    from sacm.cli.output import note
    from sacm.experiments.driver import run_plan

    with tqdm(total=plan.jobs_left, desc="runs", unit="run", disable=quiet) as bar:

        def on_outcome(outcome: Outcome) -> None:
            bar.update()
            if outcome.reason is not None:
                bar.write(f"failed: {outcome.job.run_id}: {outcome.reason}")

        tally = run_plan(plan, engine, runs, workers=workers, budget=budget, on_outcome=on_outcome)
    if tally.left:
        needed = f"the cheapest pair needs about {ask.spoken(tally.shortest)}"
        note(f"{tally.left} runs did not fit into the budget; {needed}.")
    return len(tally.failed)


def tabulated(
    experiment: Experiment, selection: Selection, groups: Sequence[JobGroup], runs: Path
) -> Findings:
    """What the runs say, with what departs from the declared grid."""
    from sacm.experiments.paper.collect import collect
    from sacm.experiments.paper.experiment import points
    from sacm.experiments.paper.tabulate import tabulate

    declared = [point.keys for point in points(experiment, replace(selection, horizons=()))]
    settings = part_of(selection)
    notes = [f"{name} {value} for every run" for name, value in settings.items()]
    absent = dict.fromkeys(group.absent for group in groups if group.absent is not None)
    if absent:
        notes.append(f"not on this machine, so their runs are not looked for: {', '.join(absent)}")
    found = collect(experiment, groups, runs)
    small = dict.fromkeys(str(group.keys["backbone"]) for group in found if group.size == "small")
    if small:
        notes.append(f"small size, not the paper's: {', '.join(small)}")
    notes = [f"{note[0].upper()}{note[1:]}." for note in notes]
    return tabulate(experiment, found, declared=declared, settings=settings, notes=notes)


def part_of(selection: Selection) -> dict[str, Any]:
    """What every run had instead of the paper's settings, horizons or seeds."""
    lists = {"horizon": selection.horizons, "seed": selection.seeds}
    parts = {name: ", ".join(map(str, values)) for name, values in lists.items() if values}
    return {**selection.settings, **parts}


def check_runs(runs: Path) -> None:
    """Refuse a folder that is not there, or that holds its runs one level further down."""
    if not runs.is_dir():
        raise ArgumentError(f"--runs {runs}: there is no such folder.")
    nested = sorted({path.parent.parent for path in runs.glob("*/*/config.json")})
    if nested and not any(runs.glob("*/config.json")):
        raise ArgumentError(
            f"--runs {runs}: the runs are further down, in {nested[0]}: copy the run folders of "
            "all machines into one folder."
        )


def read_results(path: Path, name: str) -> Findings:
    """Findings of one experiment from a file, or from `NAME.json` in a folder."""
    from sacm.cli.runs import users_to_mend
    from sacm.experiments.paper.tabulate import read_findings

    file = path / f"{name}.json" if path.is_dir() else path
    if not file.exists():
        raise ArgumentError(
            f"there is no {file}: make it with sacm paper report {name} --format json --out {file}."
        )
    with users_to_mend():
        return read_findings(file)
