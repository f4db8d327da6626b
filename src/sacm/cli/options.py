"""Options that several commands share, and one option for every setting of a run.

The options of settings are made from the fields of `sacm.settings`, where each has its default,
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
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from sacm.errors import ArgumentError
from sacm.settings import READING, RunSettings, is_duration, option_name

Command = Callable[..., None]

_HARDWARE, _DETAILS = "Hardware and logs", "Training in detail"  # headings in the help
RunName = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run: its folder, the beginning of its name, or latest."),
]
RunData = Annotated[
    str | None, typer.Option(help="A file or data set. Default: what the run was trained on.")
]
Runs = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", help="What you know about the channels: a file of `sacm rules`."),
]
KeepFile = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        help="Events that stay as measured: a --flags file with its column keep filled in.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        help="Settings in a YAML or JSON file, or the config.json of a run; options override them."
    ),
]
# Settings that the help shows first, in this order; the others have headings.
_FIRST = ("data", "horizon", "time_limit", "backbone", "strategy", "epochs", "seed")
_TEXT = ("time_limit", "minimum")  # numbers or words, which the settings read


def takes(
    make: Callable[..., Any],
    *,
    into: str,
    first: bool = True,
    options: Sequence[inspect.Parameter] | None = None,
    lead: Sequence[str] = (),
) -> Callable[[Command], Any]:
    """Decorate a command so that the parameters of a function are options of the command.

    Args:
        make: Called with the values of the options.
        into: The parameter of the command that receives what `make` returns.
        first: Whether the options come before those of the command.
        options: The options. Default: the parameters of `make`.
        lead: Options that the help shows before all others, in this order.
    """
    if options is None:
        options = list(inspect.signature(make, eval_str=True).parameters.values())

    def decorate(command: Command) -> Command:
        parameters = inspect.signature(command, eval_str=True).parameters
        rest = [parameter for name, parameter in parameters.items() if name != into]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(**{into: make(**given)}, **values)

        shown = [*options, *rest] if first else [*rest, *options]
        shown.sort(key=lambda each: lead.index(each.name) if each.name in lead else len(lead))
        # Typer reads signature and annotations; some parameters are keyword-only already.
        shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in shown}
        return run

    return decorate


def takes_settings(
    *, without: tuple[str, ...] = (), lead: tuple[str, ...] = ()
) -> Callable[[Command], Any]:
    """Decorate a command so that it takes the task and an option for every setting.

    The command's parameter `asked` receives what the user gave, by setting: the options, over the
    values of the file that `--config` names.

    Args:
        without: Settings that the command has no option for.
        lead: Options that the help shows before all others, in this order.
    """
    names = dict.fromkeys(("task", *_FIRST, *RunSettings.model_fields))
    alone = "time_limit" in without  # then --time can only mean the column
    options = [_option(name, time_flag=alone) for name in names if name not in without]
    files = {"rules": RulesFile, "keep": KeepFile, "config": ConfigFile}
    options += [_parameter(name, annotation) for name, annotation in files.items()]
    return takes(_merge, into="asked", options=options, lead=lead)


def takes_reading(*, without: tuple[str, ...] = ()) -> Callable[[Command], Any]:
    """Decorate a command so that it takes the options for reading a user's own table.

    The command's parameter `reading` receives the options that the user gave, by name.

    Args:
        without: Options that the command has no use for.
    """
    options = [_option(name, time_flag=True) for name in READING if name not in without]
    return takes(check_reading, into="reading", first=False, options=options)


def takes_run(command: Command) -> Any:
    """Decorate a command so that it takes a run, options for reading data, and rules.

    The command's parameter `loaded` receives the finished run and its network.
    """
    from sacm.cli.runs import load_predictor

    # How a run reads its channels is part of its network.
    fixed = ("target", "columns", "split", "scaling")
    options = [inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY, annotation=RunName)]
    options += [_option(name, time_flag=True) for name in READING if name not in fixed]
    options += [_parameter("rules", RulesFile), _parameter("keep", KeepFile)]
    return takes(load_predictor, into="loaded", first=False, options=options, lead=["run"])(command)


def check_reading(**given: Any) -> dict[str, Any]:
    """Options for reading as the readers take them; those at None were not given."""
    named = {name: value for name, value in given.items() if value is not None}
    # The task and the data have no say in what these options may be.
    return RunSettings.of({"task": "forecasting", "data": "-", **named}).reading()


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    """A parameter that is None where the user does not name it."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _option(name: str, *, time_flag: bool) -> inspect.Parameter:
    """The option of one setting; with `time_flag` the time column is `--time` too."""
    field = RunSettings.model_fields[name]
    if name == "task":
        argument = typer.Argument(metavar="TASK", help=field.description)
        return _parameter(name, Annotated[str | None, argument])
    extra: Any = field.json_schema_extra
    hidden = field.default in (None, False, {}) or field.is_required()
    flags = [option_name(name), *(["--time"] if name == "time" and time_flag else [])]
    option = typer.Option(
        *flags,
        help=field.description,
        metavar="KEY=VALUE" if name == "overrides" else None,
        show_default=False if hidden else str(field.default),
        rich_help_panel=extra["panel"] or (None if name in _FIRST else _DETAILS),
    )
    plain: Any = str if name in _TEXT else _plain_type(field.annotation)
    return _parameter(name, Annotated[plain | None, option])


def _plain_type(annotation: Any) -> Any:
    """The type that a command line can read: choices are text, which the settings check."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is dict:
        return list[str]
    return str if get_origin(annotation) in (Literal, tuple) else annotation


def _merge(
    rules: Path | None, keep: Path | None, config: Path | None, **given: Any
) -> dict[str, Any]:
    """The settings that were named: options over those of a file."""
    named = {name: value for name, value in given.items() if value is not None}
    if "time_limit" in named and not is_duration(named["time_limit"]):
        named["time"] = named.pop("time_limit")  # --time date names the column, as elsewhere
    pairs = named.pop("overrides", None)
    asked = {**(read_config(config) if config else {}), **named}
    for name, what in (("task", "argument 'TASK'"), ("data", "option '--data'")):
        if name not in asked:
            raise ArgumentError(f"Missing {what}: name it, or a file of settings with --config.")
    if pairs is not None:
        overrides = parse_overrides(pairs, {**asked, "overrides": {}})
        asked["overrides"] = {**asked.get("overrides", {}), **overrides}
    if rules is not None or keep is not None:
        from sacm.strategies.guard import with_files

        asked["strategy"] = with_files(asked.get("strategy") or "guard", rules, keep)
    return asked


def read_config(path: Path) -> dict[str, Any]:
    """Read settings from a YAML or JSON file; a run's own config.json is one."""
    import yaml

    try:
        record = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(f"--config {path} cannot be read: {reason}.") from None
    if not isinstance(record, dict):
        raise ArgumentError(f"--config {path} holds no settings: write lines such as `epochs: 20`.")
    # A run of a task without a horizon records 0.
    return {name: value for name, value in record.items() if (name, value) != ("horizon", 0)}


def parse_overrides(pairs: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """`key=value` pairs with values of the type that the backbone's own have."""
    from sacm.backbones.registry import configure, entry
    from sacm.tasks import make_settings

    settings = make_settings(**asked)
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
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if default is not None and type(value) is not type(default):
        raise ArgumentError(
            f"--set {key}={text}: expected a value like {default!r} ({type(default).__name__})."
        )
    return value


def numbers(text: str | None, option: str, *, shares: bool = False) -> tuple[Any, ...]:
    """`24,36` as whole numbers, or `0.8,0.95` as shares between 0 and 1."""
    kind, what = (float, "numbers between 0 and 1") if shares else (int, "whole numbers")
    try:
        found = tuple(kind(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        found = (math.nan,)
    if any(not 0 < number < 1 if shares else math.isnan(number) for number in found):
        such = "0.8,0.95" if shares else "24,36"
        raise ArgumentError(f"{option} {text!r}: expected {what} separated by commas: {such}.")
    return found


def make_hardware(
    accelerator: Annotated[
        str, typer.Option(help="cpu, gpu, mps or auto.", rich_help_panel=_HARDWARE)
    ] = "auto",
    devices: Annotated[
        int, typer.Option(help="Number of devices.", min=1, rich_help_panel=_HARDWARE)
    ] = 1,
    logger: Annotated[
        list[str] | None,
        typer.Option(
            help="tensorboard or mlflow, beside the CSV. Repeatable.", rich_help_panel=_HARDWARE
        ),
    ] = None,
) -> Any:
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
    return Hardware(accelerator, devices, loggers=tuple(logger or ()))
