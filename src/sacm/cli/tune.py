"""`sacm tune`: search for good settings by validation results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note

if TYPE_CHECKING:
    pass


@options.takes_settings(
    without=("strategy", "time_limit"),
    lead=("data", "trials", "strategies", "horizon", "backbone", "epochs"),
)
@options.takes(options.make_hardware, into="hardware")
def tune(
    asked: dict[str, Any],
    hardware: Any,
    trials: Annotated[int, typer.Option(help="Settings to try, at most.", min=1)] = 30,
    strategies: Annotated[
        str, typer.Option(help="Strategies to try, separated by commas. Default: that of the task.")
    ] = "",
    runs: options.Runs = Path("runs"),
    as_json: options.AsJson = False,
) -> None:
    """Search learning rate, size, input length, batch size and strategy; train and test the best.

    Settings that are named as options are not searched. Trials see no test rows. If the search is
    interrupted, the same command continues it.

    Example: sacm tune forecasting --data my.csv --trials 30
    """
    from sacm.data import resolve
    from sacm.experiments.tune import TUNED, tune
    from sacm.strategies.guard import files_of, share_files
    from sacm.strategies.registry import split
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
    output.check_writable(runs)
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    output.show_reading(data, settings)
    default = settings.strategy or "raw"
    tuned = tune(
        settings,
        data,
        trials=trials,
        strategies=share_files(split(strategies or default, ","), files_of(default)),
        fixed=[name for name in TUNED if name in asked],
        folder=runs,
        hardware=hardware,
        on_trial=announce_trial,
    )
    run, table = tuned.run, tuned.trials
    if as_json:
        record = {"chosen": tuned.chosen, "value": tuned.value, "trials": table}
        output.show_json({"run": str(run.folder), **record, **run.metrics})
        return
    names = list(tuned.chosen)
    rows = [
        (trial["number"] + 1, trial["value"], *(trial.get(name) for name in names))
        for trial in tuned.trials[:5]
        if trial["state"] == "complete"
    ]
    ends = [trial["state"] for trial in table]
    title = f"{ends.count('complete')} trials, {ends.count('pruned')} stopped early"
    headings = ("trial", f"validation {run.settings.select}", *names)
    output.show_table(headings, rows, title=title)
    output.show_results(run.settings.task, run.metrics)
    note(f"The runs of the trials are in {tuned.folder}.")
    typer.echo(f"run: {run.folder}")


def announce_trial(number: int, chosen: dict[str, Any]) -> None:
    """Which trial is next, on standard error."""
    words = ", ".join(f"{name} {output.format_cell(value)}" for name, value in chosen.items())
    note(f"[trial {number + 1}] {words}")
