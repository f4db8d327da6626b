"""Which backbones exist, for which tasks, in which sizes; and how one is built by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import nn

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.registry import Registry
from sacm.types import Size, TaskName

Cost = Literal["light", "medium", "heavy", "very heavy"]
BackboneType = TypeVar("BackboneType", bound=type[Backbone])
_MAY_BE_ZERO = ("seed", "level")  # all other whole numbers are at least 1


@dataclass(frozen=True)
class BackboneEntry:
    """One registered network: a name, a task, and its configuration in both sizes."""

    name: str
    task: TaskName
    model: type[Backbone]
    paper: Any
    small: Any
    cost: Cost
    reference: str

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"


# One name may stand for a network of each task.
BACKBONES: dict[TaskName, Registry[BackboneEntry]] = {
    task: Registry("backbone", scope=task) for task in get_args(TaskName)
}


def register(
    name: str, *, paper: Any, small: Any, cost: Cost = "light", reference: str = ""
) -> Callable[[BackboneType], BackboneType]:
    """Give a class decorator that makes a backbone buildable by name for its class's `task`.

    Args:
        name: The name to build it by, in any letter case; one for each task.
        paper: Its settings at full size, an instance of a frozen dataclass. The class takes it as
            first argument, and `input_len`, `channels`, `horizon` or `classes` as keywords.
        small: Another instance of that dataclass, for trying things out.
        cost: What a training step at full size takes, as listed by `sacm backbones`.
        reference: The publication it follows.

    See docs/extending.md for a whole backbone; `sacm.testing.check_backbone` checks one.
    """

    def add(model: BackboneType) -> BackboneType:
        task: TaskName = model.task  # type: ignore[attr-defined]  # set by the network base classes
        found = BackboneEntry(name, task, model, paper, small, cost, reference)
        BACKBONES[task].register(name, origin=model)(found)
        return model

    return add


def names(task: TaskName | None = None) -> list[str]:
    """List the registered names, plug-ins included, for one task or for all."""
    if task is not None:
        check_task(task)
    tasks = BACKBONES if task is None else [task]
    return list(dict.fromkeys(name for each in tasks for name in BACKBONES[each].names()))


def check_task(task: str) -> None:
    """Refuse an unknown task name."""
    if task not in BACKBONES:
        raise ArgumentError(f"unknown task {task!r}: choose one of {', '.join(BACKBONES)}.")


def entry(name: str, task: TaskName) -> BackboneEntry:
    """Look a backbone up, in any letter case; suggest the nearest name when there is none."""
    check_task(task)
    found = BACKBONES[task].find(name)
    if found is not None:
        return found
    if any(name in others for others in BACKBONES.values()):
        raise ArgumentError(
            f"there is no backbone {name!r} for {task}. {name} serves another task. Known: "
            f"{', '.join(names(task))}."
        )
    raise BACKBONES[task].unknown(name)


def configure(found: BackboneEntry, *, size: str, overrides: dict[str, Any]) -> Any:
    """The configuration of one size, with overrides applied by field name."""
    if size not in get_args(Size):
        raise ArgumentError(f"unknown size {size!r}: choose one of {', '.join(get_args(Size))}.")
    base = getattr(found, size)
    fields = [field.name for field in dataclasses.fields(base)]
    for key, value in overrides.items():
        if key not in fields:
            raise ArgumentError(
                f"{found.name} has no setting {key!r}; its settings are {', '.join(fields)}."
            )
        if key.endswith(("dropout", "share")) and not 0 <= value < 1:
            raise ArgumentError(f"{found.name}: {key} must be in [0, 1), got {value}.")
        counts = value if isinstance(value, tuple | list) else [value]
        least = 0 if key in _MAY_BE_ZERO else 1
        if any(isinstance(count, int) and count < least for count in counts):
            raise ArgumentError(f"{found.name}: {key} must be at least {least}, got {value}.")
    return dataclasses.replace(base, **overrides)


def build(
    name: str,
    task: TaskName,
    *,
    input_len: int,
    channels: int,
    horizon: int | None = None,
    classes: int | None = None,
    size: Size = "paper",
    calendar_sizes: tuple[int, int, int, int] | None = None,
    **overrides: Any,
) -> Backbone:
    """Build a backbone for one task.

    `overrides` replace fields of the architecture's own configuration dataclass (see `describe`).
    `calendar_sizes` = (steps a day, 7, 31, 366) gives Informer and TimesNet their calendar tables.
    """
    found = entry(name, task)
    config = configure(found, size=size, overrides=overrides)
    sizes: dict[str, Any] = {"input_len": input_len, "channels": channels}
    if task != "anomaly":
        key, value = ("horizon", horizon) if task == "forecasting" else ("classes", classes)
        if value is None:
            raise ArgumentError(f"{found.name} for {task} needs {key}=…")
        sizes[key] = value
    if calendar_sizes is not None:
        if not has_tables(found.model):
            raise ArgumentError(f"{found.name} takes no calendar features: drop calendar_sizes.")
        sizes["calendar_sizes"] = calendar_sizes
    construct: Callable[..., Backbone] = found.model
    return construct(config, **sizes)


def has_tables(model: type[Backbone]) -> bool:
    """Whether a network of this class can be built with calendar tables."""
    return "calendar_sizes" in inspect.signature(model.__init__).parameters


@dataclass(frozen=True)
class Description:
    """What a person asks of a backbone before using it."""

    name: str
    task: TaskName
    size: Size
    parameters: int
    dropout_sites: int
    cost: Cost
    reference: str
    config: Any
    calendar: bool  # whether it can be built with calendar tables


def describe(name: str, task: TaskName, *, size: Size = "paper") -> Description:
    """Describe a backbone at L = 96 (100 for anomaly), C = 7, H = 96, 5 classes."""
    found = entry(name, task)
    length = 100 if task == "anomaly" else 96
    with torch.random.fork_rng(devices=[]):  # asking changes nobody's random numbers
        model = build(name, task, input_len=length, channels=7, horizon=96, classes=5, size=size)
    return Description(
        name=found.name,
        task=task,
        size=size,
        parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        dropout_sites=sum(isinstance(m, nn.Dropout) for m in model.modules()),
        cost=found.cost,
        reference=found.reference,
        config=configure(found, size=size, overrides={}),
        calendar=has_tables(found.model),
    )
