"""`sacm train`: one network on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.cli import options
from sacm.cli.options import takes_settings

_LARGE = 3_000_000  # values, which take about half a minute

if TYPE_CHECKING:
    from sacm.settings import RunSettings
    from sacm.training import Hardware


@takes_settings()
def train(
    asked: dict[str, Any],
    runs: options.Runs = Path("runs"),
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    logger: options.Logger = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a network, test it, and keep the run; killed, the same command continues it.

    Example: sacm train forecasting --data my.csv --horizon 24
    """
    from sacm.tasks import let_compete, make_settings

    settings = make_settings(**let_compete(asked))
    hardware = options.make_hardware(
        accelerator=accelerator, devices=devices, loggers=logger, quiet=as_json
    )
    run_training(settings, runs, hardware, as_json=as_json)


def run_training(settings: RunSettings, runs: Path, hardware: Hardware, *, as_json: bool) -> None:
    """Train and say what came of it."""
    from sacm import training
    from sacm.cli.output import note, show_json, show_notes, show_reading, show_results
    from sacm.cli.runs import check_writable, is_main_process
    from sacm.data import resolve
    from sacm.files import write_json
    from sacm.tasks import get_task

    check_writable(runs)
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    task = get_task(settings.task)
    data = task.divide(task.resolve(settings, data), data)
    if is_main_process():
        show_reading(data, settings)
    quality = inspect_quality(data, settings) if is_main_process() else None
    run = training.train(settings, folder=runs, hardware=hardware, data=data)
    if not is_main_process():
        return
    if quality is not None:
        write_json(run.folder / "quality.json", quality)
    if as_json:
        show_json({"run": str(run.folder), "settings": run.settings.model_dump(), **run.metrics})
        return
    show_results(settings.task, run.metrics)
    metrics = run.metrics
    show_notes(metrics.get("notes", ()))
    if metrics["epochs"]:
        note(
            f"{run.settings.backbone} with {run.settings.strategy}: best of {metrics['epochs']} "
            f"epochs was {metrics['best_epoch']}, {metrics['train_seconds']:.1f} s of training."
        )
    print_run(run.folder)


def inspect_quality(data: Any, settings: RunSettings) -> dict[str, Any] | None:
    """Say in one line what is broken in the data; None where they are too large to look at now."""
    from sacm.cli.output import note
    from sacm.errors import SACMError
    from sacm.quality.inspect import inspect
    from sacm.strategies.guard import files_of

    arrays = (getattr(data, name, None) for name in ("values", "X_train", "train"))
    if sum(array.size for array in arrays if array is not None) > _LARGE:
        note("Quality: not looked at, the data are large; `sacm quality` does it on request.")
        return None
    try:
        files = files_of(settings.strategy or "raw")
        quality = inspect(data, rules=files.get("rules"), keep=files.get("keep"))
    except SACMError as error:
        note(f"Quality: could not be judged: {error}")
        return None
    note(f"Quality: {quality.sentences()[0]}")
    return quality.overview()


def print_run(folder: Path) -> None:
    """Where the run is, and what can be done with it."""
    import typer

    from sacm.cli.output import note

    typer.echo(f"run: {folder}")
    note(f"Next: sacm predict {folder}")
