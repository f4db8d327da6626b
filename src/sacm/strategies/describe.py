"""What there is to choose among strategies, read from their dataclasses and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sacm.strategies.registry import STRATEGIES, names


@dataclass(frozen=True)
class StrategyOption:
    """One option of a strategy; `default` is None where a value must be given."""

    name: str
    kind: str
    default: Any
    required: bool
    help: str


@dataclass(frozen=True)
class StrategyDescription:
    """A strategy by name: one sentence, and its options in the order they may be given in."""

    name: str
    summary: str
    options: tuple[StrategyOption, ...]


def describe(name: str) -> StrategyDescription:
    """Describe a strategy: what it does, and its options with kinds, defaults and one line each.

    Args:
        name: A name that `sacm.strategies.names()` lists.

    Raises:
        ArgumentError: If there is no such strategy.

    Example:
        >>> from sacm.strategies import describe
        >>> found = describe("hard_denoise")
        >>> [(option.name, option.default) for option in found.options]
        [('keep', 0.1), ('kind', 'largest')]
    """
    kind = STRATEGIES.get(name)
    text = inspect.getdoc(kind) or ""
    summary = " ".join(text.partition("\n\n")[0].split())
    helps, hints = _option_lines(text), get_type_hints(kind)
    options = [
        StrategyOption(
            name=field.name,
            kind=_kind(hints[field.name]),
            default=None if field.default is dataclasses.MISSING else field.default,
            required=field.default is dataclasses.MISSING,
            help=helps.get(field.name, ""),
        )
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]  # all strategies are dataclasses
    ]
    return StrategyDescription(kind.name, summary, tuple(options))


def describe_all() -> list[StrategyDescription]:
    """Describe every registered strategy, plug-ins included."""
    return [describe(name) for name in names()]


def _option_lines(text: str) -> dict[str, str]:
    """Read `name: sentence` lines of a docstring; longer sentences go on in indented lines."""
    found = re.findall(r"^ *(\w+): (.+(?:\n +(?!\w+: ).+)*)", text, flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def _kind(hint: Any) -> str:
    """Name what an option takes, or the values it takes."""
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    return {bool: "true or false", float: "number", int: "whole number"}.get(hint, "text")
