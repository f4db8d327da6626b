"""`sacm compare`: strategies × seeds, in pairs that share everything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.compare import Comparison
    from sacm.settings import RunSettings
    from sacm.training import Hardware


@options.takes_settings(
    without=("strategy", "seed", "time_limit"),
    lead=("data", "strategies", "seeds", "horizon", "backbone", "out"),
)
@options.takes(options.make_hardware, into="hardware")
def compare(
    asked: dict[str, Any],
    hardware: Any,
    strategies: Annotated[
        str,
        typer.Option(
            help="Two or more, separated by commas; the first is the reference. Default: raw and "
            "the default of the task, or sacm if that is raw."
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="Whole numbers, separated by commas.")
    ] = "2022,2023,2024,2025,2026",
    runs: options.Runs = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Train strategies with the same seeds, weights and batches, and compare them in pairs.

    Finished runs are not repeated.

    Example: sacm compare forecasting --data ILI --seeds 2022,2023 --out report.html
    """
    from sacm.strategies.guard import files_of, share_files
    from sacm.strategies.registry import split
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
    default = settings.strategy or "raw"
    named = strategies or f"raw,{'sacm' if default == 'raw' else default}"
    names = share_files([name for name in split(named, ",") if name], files_of(default))
    numbers = options.numbers(seeds, "--seeds")
    comparison, _ = run_comparison(settings, names, numbers, runs, hardware, out, quiet=as_json)
    if as_json and comparison is not None:
        report = None if out is None else str(out)
        output.show_json({**comparison.to_dict(), "report": report})


def run_comparison(
    settings: RunSettings,
    strategies: Sequence[str],
    seeds: Sequence[int],
    runs: Path,
    hardware: Hardware,
    out: Path | None,
    *,
    quiet: bool,
) -> tuple[Comparison | None, Any]:
    """Train, compare, print unless `quiet`, and write a page if `out` names one.

    Returns:
        The comparison, None in other processes than the first, and the data.
    """
    from sacm.cli.runs import is_main_process
    from sacm.data import resolve
    from sacm.experiments.compare import compare, comparison_page

    output.check_writable(runs)
    if out is not None:
        if out.is_dir():
            raise ArgumentError(f"--out {out} is a folder: name a file in it, such as report.html.")
        if out.suffix.lower() not in (".html", ".htm"):
            raise ArgumentError(f"--out {out}: a report is an .html file.")
        output.check_writable(out.parent)
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    if is_main_process():
        output.show_reading(data, settings)
    comparison = compare(
        settings, strategies, seeds, folder=runs, hardware=hardware, data=data, on_start=announce
    )
    if not is_main_process():
        return None, data
    # Results are printed first: a report that cannot be written must not keep them back.
    if not quiet:
        show_comparison(comparison)
    if out is not None:
        output.write_text(comparison_page(comparison), out)
        typer.echo(f"report: {out}", err=quiet)
    return comparison, data


def announce(settings: RunSettings, number: int, total: int) -> None:
    """Which run is next, on standard error."""
    note(f"[{number}/{total}] {settings.backbone}, {settings.strategy}, seed {settings.seed}")


def show_comparison(comparison: Comparison) -> None:
    """The tables and what they say."""
    from sacm.experiments import compare

    compare.result_table(comparison).print()
    compare.cost_table(comparison).print()
    for sentence in compare.headline(comparison):
        typer.echo(sentence)
    note(compare.LEGEND)
    if comparison.settings["task"] == "anomaly":
        note(compare.ANOMALY_LEGEND)
