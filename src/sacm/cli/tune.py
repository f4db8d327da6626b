"""`sacm tune`: search for good settings on training and validation rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note

if TYPE_CHECKING:
    from sacm.experiments.tune import Tuned


@options.takes_settings(
    without=("strategy", "time_limit"),
    lead=("data", "trials", "strategies", "horizon", "backbone", "epochs"),
)
def tune(
    asked: dict[str, Any],
    trials: Annotated[int, typer.Option(help="Settings to try, at most.", min=1)] = 30,
    strategies: Annotated[
        str, typer.Option(help="Strategies to try, separated by commas. Default: that of the task.")
    ] = "",
    runs: options.Runs = Path("runs"),
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    as_json: options.AsJson = False,
) -> None:
    """Search learning rate, size, input length, batch size and strategy; train and test the best.

    Settings that are named as options are not searched. Trials see no test rows. If the search is
    interrupted, the same command continues it.

    Example: sacm tune forecasting --data my.csv --trials 30
    """
    from sacm.cli.compare import split_strategies
    from sacm.cli.runs import check_writable
    from sacm.data import resolve
    from sacm.experiments.tune import TUNED, tune
    from sacm.strategies.guard import files_of, share_files
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
    hardware = options.make_hardware(accelerator=accelerator, devices=devices, quiet=True)
    check_writable(runs)
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    output.show_reading(data, settings)
    names = split_strategies(strategies or settings.strategy or "")
    tuned = tune(
        settings,
        data,
        trials=trials,
        strategies=share_files(names, files_of(settings.strategy or "raw")),
        fixed=[name for name in TUNED if name in asked],
        folder=runs,
        hardware=hardware,
        on_trial=announce_trial,
    )
    show_tuned(tuned, as_json=as_json)


def announce_trial(number: int, chosen: dict[str, Any]) -> None:
    """Which trial is next, on standard error."""
    words = ", ".join(f"{name} {output.format_cell(value)}" for name, value in chosen.items())
    note(f"[trial {number + 1}] {words}")


def show_tuned(tuned: Tuned, *, as_json: bool) -> None:
    """Print the best trials, the chosen settings, and the test of the final run."""
    from sacm.experiments.tune import best_first

    run, settings = tuned.run, tuned.run.settings
    if as_json:
        record = {"chosen": tuned.chosen, "value": tuned.value, "trials": tuned.trials}
        output.show_json({"run": str(run.folder), **record, **run.metrics})
        return
    best = best_first(tuned.trials, maximise=settings.select == "accuracy")[:5]
    names = list(tuned.chosen)
    rows = [(each["number"] + 1, each["value"], *(each.get(n) for n in names)) for each in best]
    headings = ("trial", f"validation {settings.select}", *names)
    ends = [each["state"] for each in tuned.trials]
    title = f"{ends.count('complete')} trials, {ends.count('pruned')} stopped early"
    output.show_table(headings, rows, title=title)
    output.show_results(settings.task, run.metrics)
    note(f"The runs of the trials are in {tuned.folder}.")
    typer.echo(f"run: {run.folder}")
