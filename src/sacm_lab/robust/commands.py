"""`sacm robust`: broken training rows, faults at test, wrong labels, hidden anomalies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, Runs, takes
from sacm.errors import ArgumentError
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
    owner_of,
    read_output,
    read_part,
    read_work,
    run_and_report,
    split_names,
    write_between,
)

if TYPE_CHECKING:
    from sacm_lab.experiment import Experiment, Part

HELP = """Run the protocols of broken data and compare strategies on them.

Example: sacm robust run training --data ETTh1 --backbone iTransformer --seeds 1,2,3 --budget 2h
"""
app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)
Name = Annotated[str, typer.Argument(metavar="NAME", help="See `sacm robust list`.")]
Kind = Annotated[
    str, typer.Option(help="Faults in the training data, by commas: `sacm corrupt --list`.")
]
Ratio = Annotated[str, typer.Option(help="Shares of the training data to break, by commas.")]
References = Annotated[
    str,
    typer.Option(help="Rows beside the strategies, such as 'raw on clean', or none. Default: all."),
]
VARIED = "contamination"


@app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """The protocols there are, and what they run.

    Example: sacm robust list
    """
    from sacm.cli.output import show_json, show_texts
    from sacm_lab.robust.protocols import PROTOCOLS

    if as_json:
        names = ("name", "title", "task", "datasets", "backbones", "strategies")
        show_json([{name: getattr(each, name) for name in names} for each in PROTOCOLS.values()])
        return
    rows = [
        (each.name, each.title, ", ".join(each.datasets), ", ".join(each.backbones))
        for each in PROTOCOLS.values()
    ]
    show_texts(("protocol", "what", "data", "backbones"), rows)


@app.command()
@takes(read_part, into="asked", lead=RUN_LEAD)
@takes(read_work, into="work")
def run(
    name: Name,
    asked: Asked,
    work: Work,
    kind: Kind = "",
    ratio: Ratio = "",
    references: References = "",
    results: Results = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run the missing runs of a protocol. Networks are small unless --size paper.

    Example: sacm robust run training --data ETTh1 --kind stuck,mix --ratio 0.1,0.3 --plan
    """
    from sacm_lab.robust.protocols import PROTOCOLS
    from sacm_lab.robust.report import protocol_report

    experiment, part = choose_protocol(name, asked, kind, ratio, references)
    files = find_files(results, experiment.name, PROTOCOLS.names())
    run_and_report(experiment, part, work, runs, files, protocol_report, as_json=as_json)


@app.command()
@takes(read_part, into="asked", lead=REPORT_LEAD)
@takes(read_output, into="output")
def report(
    name: Name,
    asked: Asked,
    output: Output,
    kind: Kind = "",
    ratio: Ratio = "",
    references: References = "",
    results: Results = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder of runs. Default: runs, or none with --results.")
    ] = None,
) -> None:
    """Report the finished runs of a protocol.

    Example: sacm robust report training --results results/robust --format html --out t.html
    """
    from sacm_lab.robust.protocols import PROTOCOLS
    from sacm_lab.robust.report import protocol_report

    experiment, part = choose_protocol(name, asked, kind, ratio, references)
    files = find_files(results, experiment.name, PROTOCOLS.names())
    folder = runs if runs is not None or results else Path("runs")
    experiment = widen(experiment, asked, files)
    found = protocol_report(experiment, *collect_rows(experiment, part, folder, files))
    deliver(found, output)


@app.command()
def summary(
    results: Annotated[Path, typer.Option(help="A folder of CSV files of results.")] = Path(
        "results/robust"
    ),
    into: Annotated[
        Path | None, typer.Option(help="Replace the table of protocols of this markdown file.")
    ] = None,
) -> None:
    """One line a protocol and strategy: gain, significance, what is recovered, cost.

    Example: sacm robust summary --results results/robust --into docs/results.md
    """
    from sacm_lab.experiment import Part
    from sacm_lab.robust.protocols import PROTOCOLS
    from sacm_lab.robust.report import summary_table

    tables = []
    names = PROTOCOLS.names()
    for experiment in PROTOCOLS.values():
        files = [
            path
            for path in sorted(results.glob("*.csv"))
            if owner_of(path, names) == experiment.name
        ]
        if files:
            whole = widen(experiment, Asked(Part(), ()), files)
            frame, _ = collect_rows(whole, Part(), None, files)
            tables.append(summary_table(whole, frame))
    if not tables:
        raise ArgumentError(f"{results} holds no results: make some with sacm robust report.")
    if into is not None:
        write_between(into, "robust", "\n\n".join(table.markdown() for table in tables))
        typer.echo(f"written to {into}")
        return
    for table in tables:
        table.print()


def choose_protocol(
    name: str, asked: Asked, kind: str = "", ratio: str = "", references: str = ""
) -> tuple[Experiment, Part]:
    """A protocol with what was asked for in place of what it declares, also other names."""
    from sacm.backbones.registry import entry
    from sacm.data.load import find, is_synthetic
    from sacm.strategies.registry import canonical
    from sacm_lab.robust.protocols import PROTOCOLS

    experiment, part = PROTOCOLS.get(name), asked.part

    def data_name(text: str) -> str:
        whole, at, rest = text.partition("@")
        return text if is_synthetic(text) else f"{find(whole).name}{at}{rest}"

    datasets = tuple(map(data_name, part.datasets)) or experiment.datasets
    backbones = tuple(entry(each, experiment.task).name for each in part.backbones)
    strategies = ("raw", *(asked.strategies or experiment.strategies))
    experiment = replace(
        experiment,
        datasets=datasets,
        backbones=backbones or experiment.backbones,
        strategies=tuple(dict.fromkeys(map(canonical, strategies))),
        horizons=() if part.horizons else experiment.horizons,
        vary=_contaminations(experiment, split_names(kind), _numbers(ratio)),
        references=_references(experiment, split_names(references)),
    )
    part = replace(part, datasets=(), backbones=(), size=part.size or "small")
    return experiment, part


def _references(experiment: Experiment, asked: tuple[str, ...]) -> dict[str, Any]:
    declared = dict(experiment.references)
    if not asked:
        return declared
    names = () if asked == ("none",) else asked
    for name in names:
        if name not in declared:
            known = ", ".join([*declared, "none"])
            raise ArgumentError(f"{experiment.name} has no reference {name!r}: use {known}.")
    return {name: declared[name] for name in names}


def _contaminations(
    experiment: Experiment, kinds: tuple[str, ...], ratios: tuple[float, ...]
) -> dict[str, tuple[object, ...]]:
    """Every kind with every ratio, where one of them is named."""
    from sacm.data.corrupt import parse_contamination

    if not kinds and not ratios:
        return dict(experiment.vary)
    if VARIED not in experiment.vary:
        raise ArgumentError(f"{experiment.name} breaks no training data: leave out kind and ratio.")
    declared = [parse_contamination(str(text)) for text in experiment.vary[VARIED]]
    names = [parse_contamination(kind)[0] for kind in kinds] or dict(declared)
    shares = ratios or tuple(dict.fromkeys(ratio for _, ratio in declared))
    texts = [f"{name}({share:g})" for name in names for share in shares]
    for text in texts:
        parse_contamination(text)  # refuses shares outside (0, 1]
    return {**experiment.vary, VARIED: tuple(texts)}


def _numbers(text: str) -> tuple[float, ...]:
    """`0.1,0.3` as numbers."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"--ratio {text!r}: expected numbers such as 0.1,0.3.") from None


def widen(experiment: Experiment, asked: Asked, results: list[Path]) -> Experiment:
    """A protocol with all data, networks, faults and strategies of result files."""
    from sacm_lab.results import read_results

    if not results:
        return experiment
    frame = read_results(results)
    frame = frame[(frame["task"] == experiment.task) & (frame["state"] == "done")]

    def named(column: str, declared: tuple[str, ...]) -> tuple[str, ...]:
        values: Any = frame[column].dropna() if column in frame else ()
        return tuple(dict.fromkeys((*declared, *map(str, values))))

    vary = dict(experiment.vary)
    if VARIED in vary:
        vary[VARIED] = named(VARIED, tuple(map(str, vary[VARIED])))
    part = asked.part
    changed: dict[str, Any] = {"vary": vary}
    if not part.datasets:
        changed["datasets"] = named("data", experiment.datasets)
    if not part.backbones:
        changed["backbones"] = named("backbone", experiment.backbones)
    if not asked.strategies:
        changed["strategies"] = named("strategy", experiment.strategies)
    return replace(experiment, **changed)
