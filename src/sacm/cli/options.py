"""Options that several commands share, and one for every setting of `sacm.settings`."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from typer import Argument, Option

from sacm.errors import ArgumentError
from sacm.settings import READING, RunSettings, is_duration, option_name

Command = Callable[..., None]
RunName = Annotated[Path, Argument(metavar="RUN", help="A folder, its first letters, or latest.")]
RunData = Annotated[str | None, Option(help="A file or data set. Default: the run's own.")]
Runs = Annotated[Path, Option(help="Folder that holds the runs.")]
RulesFile = Annotated[Path | None, Option("--rules", help="Rules for the guard: see `sacm rules`.")]
KeepFile = Annotated[Path | None, Option("--keep", help="A --flags file with its keep filled in.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for a program to read.")]
Accelerator = Annotated[str, Option(help="Where to train: cpu, gpu, mps or auto.")]
# Settings that the help shows first, in this order; the others have headings.
_FIRST = ("data", "horizon", "time_limit", "backbone", "strategy", "epochs", "seed")


def takes(
    make: Callable[..., Any], *, into: str, fields: Sequence[str] = (), lead: Sequence[str] = ()
) -> Callable[[Command], Any]:
    """Decorate a command so that the parameters of `make`, and settings, are options of it.

    The command's parameter `into` receives what `make` returns for their values. The help shows
    the options `lead` before all others, in this order.
    """
    made = inspect.signature(make, eval_str=True).parameters.values()
    options = [each for each in made if each.kind is not each.VAR_KEYWORD]
    # Where there is no time limit, --time names the column.
    options += [_option(name, time_flag="time_limit" not in fields) for name in fields]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        shown = [*(each for each in own if each.name != into), *options]
        shown.sort(key=lambda each: lead.index(each.name) if each.name in lead else len(lead))

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(**{into: make(**given)}, **values)

        # Typer reads signature and annotations; some parameters are keyword-only already.
        shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in shown}
        return run

    return decorate


def takes_settings(*, without: Sequence[str] = (), lead: Sequence[str] = _FIRST) -> Any:
    """Decorate a command so that its `asked` receives the settings that the user gave, by name."""
    fields = [name for name in RunSettings.model_fields if name not in without]
    return takes(_merge, into="asked", fields=fields, lead=lead)


def takes_reading(*, without: Sequence[str]) -> Any:
    """Decorate a command so that its `reading` receives the options for reading a user's table."""
    fields = [name for name in READING if name not in without]
    return takes(check_reading, into="reading", fields=fields)


def check_reading(**given: Any) -> dict[str, Any]:
    """Options for reading as the readers take them; those at None were not given."""
    named = {name: value for name, value in given.items() if value is not None}
    # The task and the data have no say in what these options may be.
    return RunSettings.of({"task": "forecasting", "data": "-", **named}).reading()


def _option(name: str, *, time_flag: bool) -> inspect.Parameter:
    """The option of one setting, None where the user does not name it."""
    field = RunSettings.model_fields[name]
    required, extra = field.is_required(), cast(dict[str, Any], field.json_schema_extra)
    hidden = field.default in (None, False, {}) or required
    option = Option(
        *(option_name(name), *(["--time"] if name == "time" and time_flag else [])),
        help=field.description,
        metavar="KEY=VALUE" if name == "overrides" else None,
        show_default=False if hidden else str(field.default),
        rich_help_panel=extra["panel"] or (None if name in _FIRST else "Training in detail"),
    )
    # Numbers and switches; all else is text that the settings read.
    kinds = {bool, int, float} & {field.annotation, *get_args(field.annotation)}
    plain: Any = list[str] if name == "overrides" else kinds.pop() if kinds else str
    plain = str if name in ("time_limit", "minimum") else plain
    if name == "task":
        option = Argument(metavar="TASK", help=field.description)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[plain if required else plain | None, option],
    )


def _merge(rules: RulesFile = None, keep: KeepFile = None, **given: Any) -> dict[str, Any]:
    """The settings that were named."""
    asked = {name: value for name, value in given.items() if value is not None}
    if "time_limit" in asked and not is_duration(asked["time_limit"]):
        asked["time"] = asked.pop("time_limit")  # --time date names the column, as elsewhere
    if "overrides" in asked:
        asked["overrides"] = parse_overrides(asked.pop("overrides"), asked)
    if rules is not None or keep is not None:
        from sacm.strategies.guard import with_files

        asked["strategy"] = with_files(asked.get("strategy") or "guard", rules, keep)
    return asked


def parse_overrides(pairs: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """`key=value` pairs with values of the type that the backbone's own have."""
    from pydantic import TypeAdapter, ValidationError

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
        default: Any = getattr(defaults, key, "")
        read = TypeAdapter(type(default)).validate_json
        try:
            chosen[key] = text if isinstance(default, str) else read(text, strict=True)
        except ValidationError:
            raise ArgumentError(f"--set {pair}: expected a value like {default!r}.") from None
    configure(backbone, size=settings.size, overrides=chosen)
    return chosen


def numbers(text: str | None, option: str, *, shares: bool = False) -> tuple[Any, ...]:
    """`24,36` as whole numbers, or `0.8,0.95` as shares between 0 and 1."""
    kind, what = (float, "numbers between 0 and 1") if shares else (int, "whole numbers")
    try:
        found = tuple(kind(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        found = (math.nan,)
    if any(not 0 < number < 1 if shares else math.isnan(number) for number in found):
        raise ArgumentError(f"{option} {text!r}: expected {what} separated by commas.")
    return found
