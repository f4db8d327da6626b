"""`sacm train`: one network on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.cli import options
from sacm.cli.settings_options import takes_settings

if TYPE_CHECKING:
    from sacm.settings import RunSettings
    from sacm.training import Hardware


@takes_settings()
def train(
    asked: dict[str, Any],
    runs: options.Runs = Path("runs"),
    accelerator: options.Accelerator = "cpu",
    devices: options.Devices = 1,
    logger: options.Logger = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a network, test it, and keep the run; killed, the same command continues it.

    Example: sacm train forecasting --data my.csv --horizon 24
    """
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
    hardware = options.make_hardware(
        accelerator=accelerator, devices=devices, loggers=logger, quiet=as_json
    )
    run_training(settings, runs, hardware, as_json=as_json)


def run_training(settings: RunSettings, runs: Path, hardware: Hardware, *, as_json: bool) -> None:
    """Train and say what came of it."""
    from sacm import training
    from sacm.cli.output import note, show_json, show_notes, show_results
    from sacm.cli.runs import check_writable, is_main_process
    from sacm.data import resolve

    check_writable(runs)
    data = resolve(settings.data, task=settings.task)
    show_notes(data.notes)
    run = training.train(settings, folder=runs, hardware=hardware, data=data)
    if not is_main_process():
        return
    if as_json:
        show_json({"run": str(run.folder), "settings": run.settings.model_dump(), **run.metrics})
        return
    show_results(settings.task, run.metrics)
    metrics = run.metrics
    note(
        f"{run.settings.backbone} with {run.settings.strategy}: best of {metrics['epochs']} epochs "
        f"was {metrics['best_epoch']}, {metrics['train_seconds']:.1f} s of training."
    )
    print_run(run.folder)


def print_run(folder: Path) -> None:
    """Where the run is, and what can be done with it."""
    import typer

    from sacm.cli.output import note

    typer.echo(f"run: {folder}")
    note(f"Next: sacm predict {folder}")
