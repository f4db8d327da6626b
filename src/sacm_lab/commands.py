"""What the commands of `sacm paper` and `sacm robust` share: options, running, reporting."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from sacm_lab.experiment import Experiment, Part
    from sacm_lab.report import Report

# Options that the help of `run` and of `report` shows first.
RUN_LEAD = ("datasets", "backbones", "strategies", "seeds", "plan", "budget")
REPORT_LEAD = ("results", "style", "out", "datasets", "backbones", "strategies")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class Asked(NamedTuple):
    """The part of a grid that is asked for."""

    part: Part
    strategies: tuple[str, ...]


def read_part(
    datasets: Annotated[
        str,
        typer.Option("--datasets", "--data", help="Data sets, separated by commas. Default: all."),
    ] = "",
    backbones: Annotated[
        str,
        typer.Option(
            "--backbones", "--backbone", help="Networks, separated by commas. Default: all."
        ),
    ] = "",
    strategies: Annotated[
        str, typer.Option(help="Strategies, separated by commas; the reference is always added.")
    ] = "",
    horizons: Annotated[
        str, typer.Option(help="Horizons, separated by commas. Default: all.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas. Default: all.")] = "",
    size: Annotated[str, typer.Option(help="Networks of the size paper or small.")] = "",
    epochs: Annotated[int | None, typer.Option(help="Epochs, at most.", min=1)] = None,
    stride: Annotated[
        int | None, typer.Option(help="Rows between two training windows.", min=1)
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Another setting of all runs, such as patience=3. Repeatable."),
    ] = None,
) -> Asked:
    """The part of a grid that the options describe."""
    from sacm.cli.options import numbers
    from sacm.strategies.registry import split
    from sacm_lab.experiment import Part

    if size not in ("", "paper", "small"):
        raise ArgumentError(f"--size {size!r}: use paper or small.")
    settings = {"epochs": epochs, "stride": stride, **dict(map(_setting, where or ()))}
    part = Part(
        datasets=split_names(datasets),
        backbones=split_names(backbones),
        horizons=numbers(horizons, "--horizons"),
        seeds=numbers(seeds, "--seeds"),
        size=size,
        settings={name: value for name, value in settings.items() if value is not None},
    )
    return Asked(part, tuple(filter(None, split(strategies, ","))))


class Work(NamedTuple):
    """How runs are made."""

    budget: float | None
    workers: int
    engine: str
    plan: bool
    retry_failed: bool


def read_work(
    budget: Annotated[str, typer.Option(help="Start no run after this time: 2h, 90m …")] = "",
    workers: Annotated[int, typer.Option(help="Runs at the same time.", min=1)] = 1,
    engine: Annotated[str, typer.Option(help="local, or the engine of a plug-in.")] = "local",
    plan: Annotated[
        bool, typer.Option("--plan", help="Only list what would be run, and time a few steps.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed runs again.")
    ] = False,
) -> Work:
    """How to run, checked before anything is run."""
    from sacm_lab.engines import make_engine

    make_engine(engine, workers=workers)
    return Work(parse_duration(budget) if budget else None, workers, engine, plan, retry_failed)


class Output(NamedTuple):
    """In which form a report is wanted, and where."""

    style: str
    out: Path | None


def read_output(
    style: Annotated[
        str, typer.Option("--format", help="table, md, latex, csv (every run), json or html.")
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> Output:
    """How to report, checked before anything is read."""
    from sacm_lab.report import FORMATS

    if style not in FORMATS:
        raise ArgumentError(f"--format {style!r}: use {', '.join(FORMATS)}.")
    return Output(style, out)


Results = Annotated[
    list[Path] | None,
    typer.Option(help="CSV files of results, or a folder of them: these runs are done."),
]


def split_names(text: str) -> tuple[str, ...]:
    """`a,b` as names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_duration(text: str) -> float:
    """`2h`, `90m` or `1h30m` in seconds."""
    if re.fullmatch(r"(?:\d+(?:\.\d+)?[dhms])+", text.strip()) is None:
        raise ArgumentError(f"--budget {text!r}: expected a time such as 2h, 90m or 1h30m.")
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def format_duration(seconds: float) -> str:
    """A time for a person: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _setting(pair: str) -> tuple[str, Any]:
    """`name=value` with a value that JSON or plain text gives."""
    from sacm.settings import RunSettings

    name, separator, text = pair.partition("=")
    if not separator or name not in (*RunSettings.model_fields, "epoch_limit"):
        raise ArgumentError(f"--where {pair!r}: expected a setting, such as patience=3.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    return ("epochs" if name == "epoch_limit" else name), value


def find_files(results: list[Path] | None, name: str, names: list[str]) -> list[Path]:
    """The result files of an experiment: those that are named, and its own of a folder."""
    found: list[Path] = []
    for path in results or ():
        files = [path]
        if path.is_dir():
            files = [each for each in sorted(path.glob("*.csv")) if owner_of(each, names) == name]
            if not files:
                raise ArgumentError(f"--results {path}: there is no {name}.csv in it.")
        found += files
    return found


def owner_of(path: Path, names: list[str]) -> str | None:
    """The experiment that a result file belongs to, by its name."""
    own = [name for name in names if path.stem == name or path.stem.startswith(f"{name}_")]
    return max(own, key=len) if own else None


def collect_rows(
    experiment: Experiment, part: Part, runs: Path | None, results: list[Path]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of an experiment, from run folders and result files, and the runs behind them."""
    from sacm_lab.experiment import select_rows
    from sacm_lab.results import join_results, read_results
    from sacm_lab.runs import collect_runs, records, tidy

    parts, frames = [], []
    if runs is not None:
        check_runs(runs)
        frames.append(collect_runs(runs))
        parts.append(select_rows(experiment, frames[-1], part))
    if results:
        frames.append(read_results(results))
        parts.append(select_rows(experiment, frames[-1], part, settings=False))
    whole = parts[0] if len(parts) == 1 else join_results(*parts)
    names = {str(name).partition("#")[0] for name in whole["run"]}
    every = frames[0] if len(frames) == 1 else join_results(*frames)
    return whole, tidy(records(every[every["run"].isin(names)]))


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


def carry_out(
    experiment: Experiment,
    part: Part,
    work: Work,
    runs: Path,
    *,
    results: list[Path],
    as_json: bool,
) -> int | None:
    """Run what is not yet there; how many runs failed, or None if only the plan was shown."""
    from tqdm import tqdm

    from sacm.cli.output import check_writable, note
    from sacm_lab.engines import make_engine
    from sacm_lab.experiment import make_jobs
    from sacm_lab.grid import Outcome, run_jobs, status
    from sacm_lab.results import read_results

    check_writable(runs)
    jobs, absent = make_jobs(experiment, part)
    for name in absent:
        note(f"Note: {name} is not on this machine, so its runs are left out: see `sacm data get`.")
    written: set[str] = set()
    if results:
        frame = read_results(results)
        written = set(frame[frame["state"] == "done"]["run"])
    states: dict[str, str] = {
        job.run_id: "done" if job.run_id in written else status(job, runs).state for job in jobs
    }
    wanted = {"missing", "interrupted"} | ({"failed"} if work.retry_failed else set())
    left = [job for job in jobs if states[job.run_id] in wanted]
    if work.plan:
        show_plan(jobs, states, left, work, as_json=as_json)
        return None
    engine = make_engine(work.engine, workers=work.workers)
    with tqdm(total=len(left), desc="runs", unit="run", disable=as_json) as bar:

        def on_outcome(outcome: Outcome) -> None:
            bar.update()
            if outcome.reason is not None:
                bar.write(f"failed: {outcome.job.run_id}: {outcome.reason}")

        tally = run_jobs(left, engine, runs, budget=work.budget, on_outcome=on_outcome)
    if tally.left:
        note(f"{tally.left} runs are left; the same command continues.")
    return len(tally.failed)


def show_plan(jobs: Any, states: dict[str, str], left: Any, work: Work, *, as_json: bool) -> None:
    """Runs done, failed and left by data and network, and seconds an epoch of what is left."""
    from sacm.cli.output import note, show_json
    from sacm.reports.table import Table
    from sacm_lab.grid import time_epoch

    todo = {job.run_id for job in left}
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for job in jobs:
        settings = job.settings
        key = (settings.data, settings.backbone, settings.size, str(settings.horizon or ""))
        row = rows.setdefault(key, {"done": 0, "failed": 0, "to run": 0, "s / epoch": None})
        row["done"] += states[job.run_id] == "done"
        row["failed"] += states[job.run_id] == "failed"
        if job.run_id in todo:
            row["to run"] += 1
            if row["s / epoch"] is None:
                row["s / epoch"] = round(time_epoch(job), 3)
    headings = ("data", "backbone", "size", "horizon", "done", "failed", "to run", "s / epoch")
    table = Table(headings, tuple((*key, *row.values()) for key, row in rows.items()), words=4)
    most = sum(
        (row["s / epoch"] or 0) * row["to run"] * max(job.settings.epochs for job in jobs)
        for row in rows.values()
    )
    if as_json:
        show_json({"groups": table.records(), "runs": len(left), "most_seconds": most})
        return
    table.print()
    longest = format_duration(most / work.workers)
    note(f"{len(left)} runs to do; at most {longest} if none stops early, {work.workers} at once.")


def deliver(report: Report, output: Output) -> None:
    """Print a report, or write it to a file."""
    from sacm.cli.output import check_writable

    if output.out is not None:
        check_writable(output.out.parent)
        report.write(output.out, output.style)
        typer.echo(f"written to {output.out}")
    elif output.style == "table":
        report.print()
    else:
        typer.echo(report.render(output.style), nl=False)


def run_and_report(
    experiment: Experiment,
    part: Part,
    work: Work,
    runs: Path,
    files: list[Path],
    make_report: Callable[..., Report],
    *,
    as_json: bool,
) -> None:
    """Run what is not yet there, then print what all runs say; a failed run gives exit code 1."""
    failed = carry_out(experiment, part, work, runs, results=files, as_json=as_json)
    if failed is None:
        return
    report = make_report(experiment, *collect_rows(experiment, part, runs, files))
    deliver(report, Output("json" if as_json else "table", None))
    if failed:
        raise typer.Exit(1)


def narrow_strategies(experiment: Experiment, strategies: tuple[str, ...]) -> Experiment:
    """An experiment with the strategies that are asked for, after its first."""
    from sacm.strategies.registry import canonical

    if not strategies:
        return experiment
    named = tuple(dict.fromkeys((experiment.baseline, *map(canonical, strategies))))
    return replace(experiment, strategies=named, shown=())


def write_between(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name:begin -->` and `<!-- name:end -->` of a file."""
    from sacm.files import write_atomically

    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    whole = path.read_text(encoding="utf-8")
    before, first, rest = whole.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ArgumentError(f"{path} has no lines {begin} and {end} to write between.")
    new = f"{before}{begin}\n{text}\n{end}{after}"
    write_atomically(path, lambda file: file.write_text(new, encoding="utf-8"))
