"""`sacm paper`: the paper's tables and figures by name, run as far as time allows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, Runs, takes
from sacm.errors import ArgumentError, SACMError, SACMWarning
from sacm_lab.commands import (
    REPORT_LEAD,
    RUN_LEAD,
    Asked,
    Output,
    Results,
    Work,
    collect_rows,
    deliver,
    find_files,
    narrow_strategies,
    owner_of,
    read_output,
    read_part,
    read_work,
    run_and_report,
    write_between,
)

if TYPE_CHECKING:
    import pandas as pd

    from sacm_lab.experiment import Experiment
    from sacm_lab.report import Report

HELP = """Run the paper's experiments and lay them beside it.

Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --budget 2h
"""
app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)
Name = Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`.")]
GAINS = "gains"


@app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """The experiments and figures there are.

    Example: sacm paper list
    """
    from sacm.cli.output import show_json, show_texts
    from sacm_lab.paper import figures
    from sacm_lab.paper.catalogue import EXPERIMENTS

    drawings = [(GAINS, "gain over raw by cell, strategies side by side (--results or --runs)")]
    drawings += [(name, figures.describe(name)) for name in figures.names()]
    rows = [(each.name, each.title, each.where) for each in EXPERIMENTS.values()]
    if as_json:
        experiments = [dict(zip(("name", "title", "where"), row, strict=True)) for row in rows]
        drawn = [{"name": name, "title": title} for name, title in drawings]
        show_json({"experiments": experiments, "figures": drawn})
        return
    show_texts(("experiment", "what", "where"), rows)
    show_texts(("figure", "what"), drawings)


@app.command()
@takes(read_part, into="asked", lead=RUN_LEAD)
@takes(read_work, into="work")
def run(
    name: Name,
    asked: Asked,
    work: Work,
    results: Results = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run the missing runs of an experiment.

    Stop it at any time: the same command continues. Runs in --results are not repeated.

    Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --plan
    """
    from sacm_lab.paper.catalogue import EXPERIMENTS

    experiment = narrow_strategies(EXPERIMENTS.get(name), asked.strategies)
    files = find_files(results, experiment.name, EXPERIMENTS.names())
    run_and_report(experiment, asked.part, work, runs, files, make_report, as_json=as_json)


@app.command()
@takes(read_part, into="asked", lead=REPORT_LEAD)
@takes(read_output, into="output")
def report(
    name: Name,
    asked: Asked,
    output: Output,
    results: Results = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder of runs. Default: runs, or none with --results.")
    ] = None,
) -> None:
    """Put the results of finished runs beside the paper's numbers.

    --format csv writes every run, which --results reads again.

    Example: sacm paper report replication_ili --results results/replication_ili.csv
    """
    from sacm_lab.paper.catalogue import EXPERIMENTS

    experiment = narrow_strategies(EXPERIMENTS.get(name), asked.strategies)
    folder = runs if runs is not None or results else Path("runs")
    files = find_files(results, experiment.name, EXPERIMENTS.names())
    found = make_report(experiment, *collect_rows(experiment, asked.part, folder, files))
    deliver(found, output)


def make_report(experiment: Experiment, frame: pd.DataFrame, rows: pd.DataFrame) -> Report:
    """The report of an experiment of the paper, with what the paper prints where it does."""
    from sacm_lab.experiment import RACE
    from sacm_lab.paper.published import read_published
    from sacm_lab.report import experiment_report

    published = read_published(experiment.name)

    def beside(keys: dict[str, Any], metric: str, strategy: str) -> dict[str, Any]:
        if not published:
            return {}
        values = {
            each: [p for p in published if p.fits(keys, metric, each)]
            for each in (experiment.baseline, strategy)
        }
        before, after = values[experiment.baseline], values[strategy]
        gain = paper_gain(before[0].value, after[0], metric) if before and after else None
        shown = None if strategy == experiment.baseline else gain
        return {"paper": after[0].value if after else None, "paper gain": shown}

    race = RACE if RACE in experiment.derived else ""
    return experiment_report(experiment, frame, rows, beside=beside, race=race)


def paper_gain(before: float, after: Any, metric: str) -> str | None:
    """The gain of a printed value over the printed baseline, as printed where it is."""
    from sacm.experiments.gains import format_gain
    from sacm.metrics.catalogue import metric as find_metric

    if after.gain is not None:
        return format_gain(after.gain, metric)
    kind = find_metric(metric)
    change = (after.value - before) * (100 if kind.higher_is_better else -100)
    return format_gain(change if kind.share else change / abs(before), metric)


@app.command()
def summary(
    results: Annotated[Path, typer.Option(help="A folder of CSV files of results.")] = Path(
        "results"
    ),
    into: Annotated[
        Path | None, typer.Option(help="Replace the results table of this markdown file.")
    ] = None,
) -> None:
    """One line a file and strategy: runs, gain, interval, significance.

    Example: sacm paper summary --results results --into docs/results.md
    """
    table = summary_table(results)
    if into is not None:
        write_between(into, "results", table.markdown())
        typer.echo(f"written to {into}")
        return
    table.print()


def summary_table(results: Path) -> Any:
    """The first metric of every experiment that has a file in a folder."""
    from sacm.metrics.catalogue import metric as find_metric
    from sacm.reports.table import Table
    from sacm_lab.experiment import Part
    from sacm_lab.gains import summarise_gains
    from sacm_lab.paper.catalogue import EXPERIMENTS
    from sacm_lab.report import gain_cells, pair_experiment
    from sacm_lab.runs import records

    lines = []
    for path in sorted(results.glob("*.csv")):
        name = owner_of(path, EXPERIMENTS.names())
        if name is None:
            continue
        experiment = EXPERIMENTS.get(name)
        frame, rows = collect_rows(experiment, Part(), None, [path])
        metric = experiment.metrics[0]
        pairs = pair_experiment(experiment, frame)
        table = summarise_gains(pairs[pairs["metric"] == metric])
        gains = records(table.sort_values("size", kind="stable"))
        for gain in (each for each in gains if each["strategy"] in experiment.shown_strategies):
            done = int((rows["state"] == "done").sum())
            start = (path.stem, find_metric(metric).label, gain["size"], gain["strategy"])
            lines.append((*start, done, gain["cells"], *gain_cells(gain, metric).values()))
    if not lines:
        raise ArgumentError(f"{results} holds no results of experiments: see sacm paper report.")
    headings = ("file", "metric", "size", "strategy", "runs", "of cells")
    names = ("gain", "seeds", "cells", "SD", "wins", "p")
    return Table((*headings, *names), tuple(lines), words=4)


@app.command()
def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`; or all.")],
    out: Annotated[
        Path, typer.Option(help="A .png or .svg file, or a folder for PNG files.")
    ] = Path("figures"),
    runs: Runs = Path("runs"),
    results: Results = None,
    strategies: Annotated[
        str,
        typer.Option(help="Strategies of the figure `gains`, separated by commas. Default: all."),
    ] = "",
) -> None:
    """Draw a figure of the paper from data, from finished runs, or from results.

    Example: sacm paper figure gains --results results/replication_ili.csv --out gains.png
    """
    from sacm.cli.output import check_writable, note
    from sacm_lab.paper import figures

    path = out if out.suffix else out / f"{name}.png"
    if path.suffix.lower() not in (".png", ".svg"):
        raise ArgumentError(f"--out {out}: figures are written to .png or .svg files.")
    check_writable(path.parent)
    with warnings.catch_warnings():
        # A damaged run is named once, however many figures leave it out.
        warnings.simplefilter("default", SACMWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"Note: {message}")
        wanted = figures.names() if name == "all" else [name]
        drawn = 0
        for each in wanted:
            file = out / f"{each}.png" if name == "all" else path
            try:
                if each == GAINS:
                    figures.write(draw_gains(results, runs, strategies), file)
                else:
                    figures.save(each, file, runs=runs)
            except SACMError as error:
                if name != "all":
                    raise
                note(f"{each}: {error}")
            else:
                typer.echo(f"figure: {file}")
                drawn += 1
    if not drawn:
        raise typer.Exit(1)


def draw_gains(results: list[Path] | None, runs: Path, strategies: str) -> Any:
    """Gain over raw by cell, for the experiments whose files are named, or all runs."""
    from sacm.experiments.gains import CELL
    from sacm.metrics.catalogue import metric as find_metric
    from sacm.strategies.registry import split
    from sacm.tasks import get_task
    from sacm_lab.gains import pair_runs
    from sacm_lab.paper.figures.gains import gain_figure
    from sacm_lab.results import add_best_fixed, add_race, read_results
    from sacm_lab.runs import collect_runs

    frame = read_results(results) if results else collect_runs(runs)
    frame = add_race(add_best_fixed(frame))
    tasks = frame["task"].dropna().unique()
    metrics = [get_task(task).leading_metrics[0] for task in tasks]
    pairs = pair_runs(frame, metrics)
    wanted = list(filter(None, split(strategies, ","))) or list(dict.fromkeys(pairs["strategy"]))
    pairs = pairs[pairs["strategy"].isin(wanted)]
    if pairs.empty:
        raise ArgumentError("there is no pair of raw and another strategy to draw.")
    several = [key for key in CELL if key in pairs and pairs[key].nunique() > 1]
    gains: dict[str, dict[str, list[float]]] = {}
    ordered = pairs.sort_values(["data", "backbone", "horizon"], kind="stable")
    for place, group in ordered.groupby(several or ["data"], sort=False, dropna=False):
        cell = " ".join(str(each) for each in place)
        rows = {name: group[group["strategy"] == name]["gain"].tolist() for name in wanted}
        gains[cell] = {name: values for name, values in rows.items() if values}
    labels = ", ".join(find_metric(name).label for name in dict.fromkeys(metrics))
    unit = "percentage points" if all(find_metric(name).share for name in metrics) else "%"
    fixed = ", ".join(
        str(pairs[key].iloc[0]) for key in CELL if key in pairs and key not in several
    )
    return gain_figure(gains, unit=unit, title=f"{labels}: {fixed}")
