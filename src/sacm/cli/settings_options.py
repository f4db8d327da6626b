"""One command-line option for every setting of a run, made from the settings' own fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from sacm.cli.option_groups import takes_parameters
from sacm.errors import ArgumentError
from sacm.settings import READING, RunSettings, extras_of, option_name

_CONFIG = Annotated[
    Path | None,
    typer.Option(
        help="Settings in a YAML or JSON file, or the config.json of a run; options override them."
    ),
]


def takes_settings(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command so that it takes the task and an option for every setting.

    Args:
        without: Settings that the command has another way to ask for.

    Returns:
        A decorator. The command's parameter `asked` receives what the user gave, by setting: the
        options, over the values of the file that `--config` names.
    """
    names = [name for name in RunSettings.model_fields if name not in without]
    options = [_parameter(name, RunSettings.model_fields[name]) for name in names]
    config = inspect.Parameter("config", _KIND, default=None, annotation=_CONFIG)

    def merge(config: Path | None, **given: Any) -> dict[str, Any]:
        return _merge(given, config)

    return takes_parameters([*options, config], merge, into="asked", first=True)


def takes_reading(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command so that it takes the options for reading a user's own table.

    Args:
        without: Options that the command has no use for.

    Returns:
        A decorator. The command's parameter `reading` receives the options that the user gave, by
        name, as `sacm.data.resolve` takes them.
    """
    names = [name for name in READING if name not in without]
    options = [_parameter(name, RunSettings.model_fields[name]) for name in names]

    def check(**given: Any) -> dict[str, Any]:
        return check_reading(given)

    return takes_parameters(options, check, into="reading", first=False)


def check_reading(given: dict[str, Any]) -> dict[str, Any]:
    """Options for reading as the readers take them; those at None were not given."""
    named = {name: value for name, value in given.items() if value is not None}
    # The task and the data have no say in what these options may be.
    return RunSettings.read({"task": "forecasting", "data": "-", **named}).reading()


_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """The option of one setting; its value is None where the user does not name it."""
    help = field.description or ""
    if name == "task":
        kind: Any = Annotated[str | None, typer.Argument(metavar="TASK", help=help)]
        return inspect.Parameter(name, _KIND, default=None, annotation=kind)
    shown = None if field.default in (None, False) or field.is_required() else str(field.default)
    if name == "overrides":
        option = typer.Option(option_name(name), metavar="KEY=VALUE", help=help)
        kind = Annotated[list[str] | None, option]
    else:
        panel = extras_of(field).get("panel")
        option = typer.Option(
            option_name(name),
            help=help,
            show_default=shown or False,
            rich_help_panel=None if panel is None else str(panel),
        )
        kind = Annotated[_plain_type(field.annotation) | None, option]
    return inspect.Parameter(name, _KIND, default=None, annotation=kind)


def _plain_type(annotation: Any) -> Any:
    """The type that a command line can read: choices are text, which the settings check."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return str if get_origin(annotation) in (Literal, tuple) else annotation


def _merge(given: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The settings that were named: options over those of a file."""
    named = {name: value for name, value in given.items() if value is not None}
    pairs = named.pop("overrides", None)
    asked = {**(read_config(file) if file else {}), **named}
    for name in ("task", "data"):
        if name not in asked:
            what = "argument 'TASK'" if name == "task" else "option '--data'"
            raise ArgumentError(f"Missing {what}: name it, or a file of settings with --config.")
    if pairs is not None:
        asked["overrides"] = {**asked.get("overrides", {}), **_parse_overrides(pairs, asked)}
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


def _parse_overrides(pairs: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    from sacm.cli.options import parse_overrides
    from sacm.tasks import make_settings

    return parse_overrides(pairs, make_settings(**{**asked, "overrides": {}}))
