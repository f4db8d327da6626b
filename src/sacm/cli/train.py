"""`sacm train`: one network on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sacm.cli import options

if TYPE_CHECKING:
    from sacm.tasks.settings import RunSettings
    from sacm.training import Hardware


def train(
    task: options.Task,
    data: options.Data,
    backbone: options.Backbone = None,
    size: options.Size = "paper",
    strategy: options.Strategy = "sacm",
    seed: options.Seed = 42,
    input_len: options.InputLen = None,
    horizon: options.Horizon = None,
    batch_size: options.BatchSize = None,
    epochs: options.Epochs = 100,
    patience: options.Patience = 10,
    lr: options.LearningRate = 2e-4,
    weight_decay: options.WeightDecay = 5e-4,
    stride: options.Stride = 1,
    train_fraction: options.TrainFraction = 1.0,
    select: options.Select = None,
    score: options.Score = "native",
    overrides: options.Overrides = None,
    runs: options.Runs = Path("runs"),
    accelerator: options.Accelerator = "cpu",
    devices: options.Devices = 1,
    precision: options.Precision = "32-true",
    compile_network: options.Compile = False,
    logger: options.Logger = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a network, test it, and keep the run; killed, the same command continues it.

    Example: sacm train forecasting --data my.csv --horizon 24
    """
    chosen = {
        "strategy": strategy,
        "seed": seed,
        "input_len": input_len,
        "horizon": horizon,
        "batch_size": batch_size,
        "epochs": epochs,
        "patience": patience,
        "learning_rate": lr,
        "weight_decay": weight_decay,
        "stride": stride,
        "train_fraction": train_fraction,
        "select": select,
        "score": score,
        "precision": precision,
        "compile": compile_network,
    }
    settings = options.make_settings(
        task, data, backbone=backbone, size=size, overrides=overrides, options=chosen
    )
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
