"""`sacm compare`: strategies × seeds, in pairs that share everything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options
from sacm.cli.options import takes_settings
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.compare import Comparison
    from sacm.settings import RunSettings
    from sacm.training import Hardware


@takes_settings(without=("strategy", "seed", "time_limit"))
def compare(
    asked: dict[str, Any],
    strategies: Annotated[
        str,
        typer.Option(
            help="Two or more, separated by commas; the first is the baseline. Default: raw and "
            "the task's own, or sacm where that is raw."
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="Whole numbers, separated by commas.")
    ] = "2022,2023,2024,2025,2026",
    runs: options.Runs = Path("runs"),
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    logger: options.Logger = None,
    out: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Train strategies with the same seeds, weights and batches, and compare them in pairs.

    Finished runs are not repeated.

    Example: sacm compare forecasting --data ILI --seeds 2022,2023 --out report.html
    """
    from sacm.strategies.guard import share_files
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
    second = "sacm" if settings.strategy == "raw" else settings.strategy
    names = share_files(split_strategies(strategies or f"raw,{second}"), settings.strategy or "raw")
    numbers = options.whole_numbers(seeds, "--seeds")
    hardware = options.make_hardware(
        accelerator=accelerator, devices=devices, loggers=logger, quiet=as_json
    )
    run_comparison(settings, names, numbers, runs, hardware, out=out, as_json=as_json)


def split_strategies(text: str) -> list[str]:
    """Split `raw,sacm(p_max=0.4,gamma=2)` at the commas outside of parentheses."""
    from sacm.strategies.registry import split

    return [part for part in split(text, ",") if part]


def run_comparison(
    settings: RunSettings,
    strategies: list[str],
    seeds: Sequence[int],
    runs: Path,
    hardware: Hardware,
    *,
    out: Path | None,
    as_json: bool,
    command: str | None = None,
) -> None:
    """Train, compare, print, and write the report if it is asked for."""
    from sacm.cli.output import show_reading
    from sacm.cli.runs import as_user_error, check_writable, is_main_process
    from sacm.data import resolve
    from sacm.experiments.compare import compare

    check_writable(runs)
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm") and not out.is_dir():
            raise ArgumentError(f"--out {out}: a report is an .html file.")
        check_writable(out.parent)
        if out.is_dir():
            raise ArgumentError(f"--out {out} is a folder: name a file in it, such as report.html.")
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    if is_main_process():
        show_reading(data, settings)
    comparison = compare(
        settings,
        strategies,
        seeds,
        folder=runs,
        hardware=hardware,
        data=data,
        on_start=announce,
    )
    if not is_main_process():
        return
    # Results are printed first: a report that cannot be written must not keep them back.
    show_comparison(comparison, out, as_json=as_json)
    if out is not None:
        from sacm.experiments.compare_page import write_compare_page

        with as_user_error():
            write_compare_page(comparison, out, data=data, command=command)
        if not as_json:
            typer.echo(f"report: {out}")


def announce(settings: RunSettings, number: int, total: int) -> None:
    """Which run is next, on standard error."""
    from sacm.cli.output import note

    note(f"[{number}/{total}] {settings.backbone}, {settings.strategy}, seed {settings.seed}")


def show_comparison(comparison: Comparison, out: Path | None, *, as_json: bool) -> None:
    """The tables and what they say; or everything, as JSON."""
    from rich.console import Console

    from sacm.cli.output import note, show_json
    from sacm.experiments.compare import (
        ANOMALY_LEGEND,
        LEGEND,
        NARROW,
        cost_table,
        headline,
        result_table,
    )

    sentences = headline(comparison)
    if as_json:
        report = None if out is None else str(out)
        show_json({**comparison.to_dict(), "headline": sentences, "report": report})
        return
    console = Console()
    result_table(comparison).only(NARROW).print(console)
    cost_table(comparison).print(console)
    for sentence in sentences:
        console.print(sentence, highlight=False, markup=False)
    note(LEGEND)
    if comparison.task == "anomaly":
        note(ANOMALY_LEGEND)
