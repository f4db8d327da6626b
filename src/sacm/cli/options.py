"""Options that several commands share, and one option for every setting of a run.

Options of a run's settings are made from the fields of `sacm.settings`, where each has its default,
limits and help text. A command takes them by a decorator and receives one value.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from sacm.errors import ArgumentError
from sacm.settings import READING, RunSettings, extras_of, is_duration, option_name

if TYPE_CHECKING:
    from sacm.training import Hardware

Command = Callable[..., None]

HARDWARE = "Hardware and logs"  # headings of options in the help
DETAILS = "Training in detail"
Runs = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
Accelerator = Annotated[str, typer.Option(help="cpu, gpu, mps or auto.", rich_help_panel=HARDWARE)]
Devices = Annotated[int, typer.Option(help="How many of them.", min=1, rich_help_panel=HARDWARE)]
Logger = Annotated[
    list[str] | None,
    typer.Option(
        help="tensorboard or mlflow, beside the CSV. Repeatable.", rich_help_panel=HARDWARE
    ),
]
RulesFile = Annotated[
    Path | None, typer.Option("--rules", help="What the guard is told, as `sacm rules` writes it.")
]
KeepFile = Annotated[
    Path | None,
    typer.Option("--keep", help="Events that stay as measured: a --flags file, keep filled in."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
_Config = Annotated[
    Path | None,
    typer.Option(
        help="Settings in a YAML or JSON file, or the config.json of a run; options override them."
    ),
]
# The settings that the help shows first, in this order; the others stand under headings.
_FIRST = ("data", "horizon", "time_limit", "backbone", "strategy", "epochs", "seed")
_TEXT = ("time_limit", "minimum")  # numbers that may be words, which the settings read
_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD


def takes(make: Callable[..., Any], *, into: str, first: bool = True) -> Callable[[Command], Any]:
    """Decorate a command so that the parameters of a function are options of the command.

    Args:
        make: Called with the values of the options, which are its parameters.
        into: The parameter of the command that receives what `make` returns.
        first: Whether the options come before those of the command.

    Returns:
        The decorator.
    """
    options = list(inspect.signature(make, eval_str=True).parameters.values())
    return _takes_parameters(options, make, into=into, first=first)


def takes_settings(*, without: tuple[str, ...] = ()) -> Callable[[Command], Any]:
    """Decorate a command so that it takes the task and an option for every setting.

    Args:
        without: Settings that the command has another way to ask for.

    Returns:
        A decorator. The command's parameter `asked` receives what the user gave, by setting: the
        options, over the values of the file that `--config` names.
    """
    names = dict.fromkeys(("task", *_FIRST, *RunSettings.model_fields))
    options = [_parameter(name) for name in names if name not in without]
    if "time_limit" in without:  # then --time can only mean the column
        options = [_also_time(option) for option in options]
    kinds = {"rules": RulesFile, "keep": KeepFile, "config": _Config}
    files = [
        inspect.Parameter(name, _KIND, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]

    def merge(
        rules: Path | None, keep: Path | None, config: Path | None, **given: Any
    ) -> dict[str, Any]:
        asked = _merge(given, config)
        if rules is not None or keep is not None:
            from sacm.strategies.guard import with_files

            asked["strategy"] = with_files(asked.get("strategy") or "guard", rules, keep)
        return asked

    return _takes_parameters([*options, *files], merge, into="asked", first=True)


def takes_reading(*, without: tuple[str, ...] = ()) -> Callable[[Command], Any]:
    """Decorate a command so that it takes the options for reading a user's own table.

    Args:
        without: Options that the command has no use for.

    Returns:
        A decorator. The command's parameter `reading` receives the options that the user gave, by
        name, as `sacm.data.resolve` takes them.
    """
    options = [_also_time(_parameter(name)) for name in READING if name not in without]

    def check(**given: Any) -> dict[str, Any]:
        return check_reading(given)

    return _takes_parameters(options, check, into="reading", first=False)


def _takes_parameters(
    options: Sequence[inspect.Parameter], make: Callable[..., Any], *, into: str, first: bool
) -> Callable[[Command], Any]:
    """Decorate a command as `takes`, with options that are no function's parameters."""

    def decorate(command: Command) -> Command:
        parameters = inspect.signature(command, eval_str=True).parameters
        rest = [parameter for name, parameter in parameters.items() if name != into]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(**{into: make(**given)}, **values)

        shown = [*options, *rest] if first else [*rest, *options]
        # Typer reads both. Those of `rest` may follow a `*` in the command.
        shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in shown}
        return run

    return decorate


def check_reading(given: dict[str, Any]) -> dict[str, Any]:
    """Options for reading as the readers take them; those at None were not given."""
    named = {name: value for name, value in given.items() if value is not None}
    # The task and the data have no say in what these options may be.
    return RunSettings.read({"task": "forecasting", "data": "-", **named}).reading()


def _parameter(name: str) -> inspect.Parameter:
    """The option of one setting; its value is None where the user does not name it."""
    field: FieldInfo = RunSettings.model_fields[name]
    help = field.description or ""
    if name == "task":
        kind: Any = Annotated[str | None, typer.Argument(metavar="TASK", help=help)]
        return inspect.Parameter(name, _KIND, default=None, annotation=kind)
    panel = extras_of(field).get("panel") or (None if name in _FIRST else DETAILS)
    if name == "overrides":
        option = typer.Option(
            option_name(name), metavar="KEY=VALUE", help=help, rich_help_panel=panel
        )
        kind = Annotated[list[str] | None, option]
    else:
        hidden = field.default in (None, False) or field.is_required()
        default: Any = False if hidden else str(field.default)
        option = typer.Option(
            option_name(name), help=help, show_default=default, rich_help_panel=panel
        )
        plain = str if name in _TEXT else _plain_type(field.annotation)
        kind = Annotated[plain | None, option]
    return inspect.Parameter(name, _KIND, default=None, annotation=kind)


def _also_time(option: inspect.Parameter) -> inspect.Parameter:
    """The option of the time column with a second name, for commands that have no time limit."""
    if option.name == "time":
        get_args(option.annotation)[1].param_decls = ("--time",)
    return option


def _plain_type(annotation: Any) -> Any:
    """The type that a command line can read: choices are text, which the settings check."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return str if get_origin(annotation) in (Literal, tuple) else annotation


def _merge(given: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The settings that were named: options over those of a file."""
    from sacm.tasks import make_settings

    named = {name: value for name, value in given.items() if value is not None}
    if "time_limit" in named and not is_duration(named["time_limit"]):
        named["time"] = named.pop("time_limit")  # --time date names the column, as elsewhere
    pairs = named.pop("overrides", None)
    asked = {**(read_config(file) if file else {}), **named}
    for name, what in (("task", "argument 'TASK'"), ("data", "option '--data'")):
        if name not in asked:
            raise ArgumentError(f"Missing {what}: name it, or a file of settings with --config.")
    if pairs is not None:
        settings = make_settings(**{**asked, "overrides": {}})
        asked["overrides"] = {**asked.get("overrides", {}), **parse_overrides(pairs, settings)}
    return asked


def read_config(path: Path) -> dict[str, Any]:
    """Read settings from a YAML or JSON file; a run's own config.json is one.

    Raises:
        ArgumentError: The file is not there, is not YAML, or holds no settings by name.
    """
    import yaml

    try:
        record = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"--config {path} cannot be read ({error.strerror}).") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(f"--config {path} is neither YAML nor JSON: {reason}.") from None
    if not isinstance(record, dict):
        raise ArgumentError(f"--config {path} holds no settings: write lines such as `epochs: 20`.")
    # YAML 1.1 reads 2e-4 as text; a run of a task without a horizon records 0.
    numbers = {name: _number(name, value) for name, value in record.items()}
    return {name: value for name, value in numbers.items() if (name, value) != ("horizon", 0)}


def _number(name: str, value: Any) -> Any:
    field = RunSettings.model_fields.get(name)
    if field is None or not isinstance(value, str) or _plain_type(field.annotation) is not float:
        return value
    try:
        return float(value)
    except ValueError:
        return value  # the settings say what is wrong with it


def parse_overrides(pairs: list[str], settings: RunSettings) -> dict[str, Any]:
    """`key=value` pairs with values of the type that the backbone's own have."""
    from sacm.backbones.registry import configure, entry

    backbone = entry(str(settings.backbone), settings.task)
    defaults = configure(backbone, size=settings.size, overrides={})
    chosen: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator:
            raise ArgumentError(f"--set takes key=value, got {pair!r}.")
        chosen[key] = as_like(key, text, getattr(defaults, key, None))
    configure(backbone, size=settings.size, overrides=chosen)
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
