"""`sacm train`: one network on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note

if TYPE_CHECKING:
    from sacm.settings import RunSettings

_LARGE = 3_000_000  # values, which take about half a minute


@options.takes(options.make_hardware, into="hardware")
@options.takes_settings()
def train(
    asked: dict[str, Any],
    hardware: Any,
    runs: options.Runs = Path("runs"),
    as_json: options.AsJson = False,
) -> None:
    """Train a network, test it, and keep the run.

    The same command continues a run that was stopped, and does not repeat a finished one.

    Example: sacm train forecasting --data my.csv --horizon 24
    """
    from sacm import training
    from sacm.data import resolve
    from sacm.files import write_json
    from sacm.tasks import get_task, let_compete, make_settings

    settings = make_settings(**let_compete(asked))
    output.check_writable(runs)
    data = resolve(settings.data, task=settings.task, reading=settings.reading())
    task = get_task(settings.task)
    data = task.divide(task.resolve(settings, data), data)
    quality = None
    if options.is_main_process():
        output.show_reading(data, settings)
        quality = inspect_quality(data, settings)
    run = training.train(settings, folder=runs, hardware=hardware, data=data)
    if not options.is_main_process():
        return
    if quality is not None:
        write_json(run.folder / "quality.json", quality)
    metrics = run.metrics
    if as_json:
        output.show_json({"run": str(run.folder), "settings": run.settings.model_dump(), **metrics})
        return
    output.show_results(settings.task, metrics)
    output.show_notes(metrics.get("notes", ()))
    if metrics["epochs"]:
        note(
            f"{run.settings.backbone} with {run.settings.strategy}: best of {metrics['epochs']} "
            f"epochs was {metrics['best_epoch']}, {metrics['train_seconds']:.1f} s of training."
        )
    typer.echo(f"run: {run.folder}")
    note(f"Next: sacm predict {run.folder}")


def inspect_quality(data: Any, settings: RunSettings) -> dict[str, Any] | None:
    """Say in one line what is broken in the data; None where they are too large to look at now."""
    from sacm.errors import SACMError
    from sacm.quality.inspect import inspect
    from sacm.strategies.guard import files_of

    arrays = (getattr(data, name, None) for name in ("values", "X_train", "train"))
    if sum(array.size for array in arrays if array is not None) > _LARGE:
        note("Quality: not looked at, the data are large; `sacm quality` does it on request.")
        return None
    try:
        quality = inspect(data, **files_of(settings.strategy or "raw"))
    except SACMError as error:
        note(f"Quality: could not be judged: {error}")
        return None
    note(f"Quality: {quality.sentences()[0]}")
    return quality.overview()
