"""Options that several commands share, and how they become the settings of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.tasks.settings import RunSettings
    from sacm.training import Hardware

Task = Annotated[
    str, typer.Argument(metavar="TASK", help="forecasting, classification or anomaly.")
]
Data = Annotated[str, typer.Option(help="A name from `sacm data list`, or a file of your own.")]
Backbone = Annotated[
    str | None,
    typer.Option(help="See `sacm backbones`. Default: PatchTST, InceptionTime or TranAD by task."),
]
Size = Annotated[str, typer.Option(help="paper or small.")]
Strategy = Annotated[
    str, typer.Option(help="sacm, raw, fixed(0.2), learned_global, selective+sacm …")
]
Seed = Annotated[int, typer.Option(help="Weights, order of the data, masks.")]
InputLen = Annotated[
    int | None,
    typer.Option(help="Steps the network sees. Default: 96, anomaly 100; less for short series."),
]
Horizon = Annotated[
    int | None,
    typer.Option(help="Steps to forecast. Default: the paper's shortest; 24 for your own data."),
]
BatchSize = Annotated[
    int | None, typer.Option(help="Windows in a batch. Default: 32; classification 64.")
]
Epochs = Annotated[int, typer.Option(help="Passes over the training windows, at most.")]
Patience = Annotated[int, typer.Option(help="Epochs without improvement before stopping.")]
LearningRate = Annotated[float, typer.Option("--lr", help="Learning rate of Adam.")]
WeightDecay = Annotated[float, typer.Option(help="Not applied to SACM's own scalars.")]
Stride = Annotated[
    int,
    typer.Option(
        help="Rows between two training windows; for anomaly between all windows, though every row "
        "is scored."
    ),
]
TrainFraction = Annotated[
    float, typer.Option(help="Forecasting: only this share of the training windows.")
]
Select = Annotated[
    str | None,
    typer.Option(
        help="What chooses the epoch: mae (default) or mse; for classification accuracy (default) "
        "or loss."
    ),
]
Score = Annotated[str, typer.Option(help="Anomaly score: native or reconstruction.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the backbone. Repeatable."),
]
Runs = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
Accelerator = Annotated[str, typer.Option(help="cpu, gpu, mps or auto.")]
Devices = Annotated[int, typer.Option(help="How many of them.", min=1)]
Precision = Annotated[str, typer.Option(help="32-true, bf16-mixed or 16-mixed.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the network with torch.compile.")]
Logger = Annotated[
    list[str] | None, typer.Option(help="tensorboard or mlflow, beside the CSV. Repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

DEFAULT_BACKBONES = {
    "forecasting": "PatchTST",
    "classification": "InceptionTime",
    "anomaly": "TranAD",
}


def make_settings(
    task: str,
    data: str,
    *,
    backbone: str | None,
    size: str,
    overrides: list[str] | None,
    options: dict[str, Any],
) -> RunSettings:
    """Checked settings; `options` are fields of `RunSettings`."""
    from sacm.tasks import get_task
    from sacm.tasks.settings import RunSettings

    get_task(task)
    backbone = backbone or DEFAULT_BACKBONES[task]
    settings = RunSettings.make(task=task, data=data, backbone=backbone, size=size, **options)
    chosen = parse_overrides(overrides or [], settings)
    return settings.model_copy(update={"overrides": chosen})


def parse_overrides(pairs: list[str], settings: RunSettings) -> dict[str, Any]:
    """`key=value` pairs with values of the type that the backbone's own have."""
    from sacm.backbones.registry import configure, entry

    found = entry(settings.backbone, settings.task)
    own = configure(found, size=settings.size, overrides={})
    chosen: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator:
            raise ArgumentError(f"--set takes key=value, got {pair!r}.")
        chosen[key] = as_like(key, text, getattr(own, key, None))
    configure(found, size=settings.size, overrides=chosen)
    return chosen


def as_like(key: str, text: str, default: Any) -> Any:
    """A value from text, of the type of `default`."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if isinstance(value, float) and not math.isfinite(value):
        raise ArgumentError(f"--set {key}={text}: expected a finite number.")
    if isinstance(default, tuple) and isinstance(value, list):
        return tuple(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if default is not None and type(value) is not type(default):
        raise ArgumentError(
            f"--set {key}={text}: expected a value like {default!r} ({type(default).__name__})."
        )
    return value


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """`24,36` as numbers."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(
            f"{option} {text!r}: expected whole numbers separated by commas, such as 24,36."
        ) from None


def make_hardware(
    *, accelerator: str, devices: int, loggers: list[str] | None, quiet: bool
) -> Hardware:
    """Where to train, once Lightning has agreed that it is there."""
    from lightning.fabric import Fabric

    from sacm.training import Hardware

    try:
        Fabric(accelerator=accelerator, devices=devices)
    except Exception as error:  # Lightning has several of its own for hardware that is not there
        reason = str(error).splitlines()[0].rstrip(".")
        raise ArgumentError(f"--accelerator {accelerator} --devices {devices}: {reason}.") from None
    return Hardware(
        accelerator=accelerator,
        devices=devices,
        show_progress=not quiet,
        loggers=tuple(loggers or ()),
    )
