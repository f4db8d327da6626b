"""Options that several commands share; those of a run's settings are in `settings_options`."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.settings import RunSettings
    from sacm.training import Hardware

Runs = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
Accelerator = Annotated[str, typer.Option(help="cpu, gpu, mps or auto.")]
Devices = Annotated[int, typer.Option(help="How many of them.", min=1)]
Logger = Annotated[
    list[str] | None, typer.Option(help="tensorboard or mlflow, beside the CSV. Repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def parse_overrides(pairs: list[str], settings: RunSettings) -> dict[str, Any]:
    """`key=value` pairs with values of the type that the backbone's own have."""
    from sacm.backbones.registry import configure, entry

    found = entry(str(settings.backbone), settings.task)
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
    import torch
    from lightning.fabric import Fabric

    from sacm.training import Hardware

    cores = os.cpu_count() or 1
    on_cpu = accelerator == "cpu" or (accelerator == "auto" and not torch.cuda.is_available())
    if on_cpu and devices > cores:
        raise ArgumentError(f"--devices {devices}: this machine has {cores} cores.")
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
