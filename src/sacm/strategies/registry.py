"""Strategies by name: `raw`, `fixed(0.2)`, `sacm(detrend=none)`, `guard+sacm`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from sacm import registry
from sacm.errors import ArgumentError
from sacm.registry import Registry
from sacm.strategies.base import Strategy
from sacm.strategies.combined import Combined

STRATEGIES: Registry[type[Strategy]] = registry.STRATEGIES
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
StrategyType = TypeVar("StrategyType", bound=type[Strategy])


def register(name: str, *, aliases: tuple[str, ...] = ()) -> Callable[[StrategyType], StrategyType]:
    """Give a class decorator that makes a strategy available by name.

    Args:
        name: Letters, digits and underscores. What comes in brackets behind it, as in
            `fixed(p=0.2)`, are the fields of the class, a frozen dataclass of numbers, texts and
            booleans; `sacm strategies` shows the first paragraph of its docstring.
        aliases: Other names it is found by.

    Example:
        >>> from dataclasses import dataclass
        >>> from sacm.registry import temporary_entries
        >>> with temporary_entries():
        ...     @register("clip")
        ...     @dataclass(frozen=True)
        ...     class Clip(Strategy):
        ...         limit: float = 3.0
        ...         def inputs(self, x, *, training=False):
        ...             return x.clamp(-self.limit, self.limit)
        ...     canonical("clip(2)+sacm")
        'clip(limit=2.0)+sacm'
    """
    if re.fullmatch(_NAME, name) is None:
        raise ArgumentError(f"a strategy is named by letters, digits and _, not {name!r}.")

    def add(kind: StrategyType) -> StrategyType:
        kind.name = name
        return STRATEGIES.register(name, aliases=aliases)(kind)

    return add


def names() -> list[str]:
    """List the registered strategies, plug-ins included."""
    return STRATEGIES.names()


def parse(text: str) -> Strategy:
    """Make a strategy from its name with options, or several joined by `+`.

    Beside others `raw` is left out, for it does nothing. An unknown name or option is an
    `ArgumentError`, and so are two strategies that exclude each other.

    Example:
        >>> parse("guard+sacm(p_max=0.4)").parts[1].p_max
        0.4
    """
    parts = [_parse_part(part) for part in split(text, "+")]
    owners: dict[str, str] = {}
    for part in parts:
        if [other.name for other in parts].count(part.name) > 1:
            raise ArgumentError(f"strategy {text!r} names {part.name} twice.")
        if not part.combines and len(parts) > 1:
            raise ArgumentError(f"strategy {text!r}: join the members of {part.name} instead.")
        for role in part.roles:
            if role in owners:
                raise ArgumentError(f"{owners[role]} and {part.name} both {role}: use one of them.")
            owners[role] = part.name
    return join([part for part in parts if part.name != "raw"] or parts)


def join(parts: Sequence[Strategy]) -> Strategy:
    """One strategy that does what these do."""
    return parts[0] if len(parts) == 1 else Combined(tuple(parts))


def parts_of(strategy: Strategy) -> tuple[Strategy, ...]:
    """The strategies that act in one; a single one is its only part."""
    return strategy.parts if isinstance(strategy, Combined) else (strategy,)


def canonical(text: str) -> str:
    """Spell a strategy in the one way that its meaning has: defaults out, options in order."""
    return spell(*parts_of(parse(text)))


def spell(*parts: Any) -> str:
    """The text that `parse` makes these strategies of; members of a race are always named."""
    texts = []
    for part in parts:
        options: list[str] = []
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if isinstance(value, tuple):
                options += value
            elif value != field.default:
                options.append(f"{field.name}={spell_value(value)}")
        texts.append(part.name + (f"({','.join(options)})" if options else ""))
    return "+".join(texts)


def split(text: str, separator: str) -> list[str]:
    """Split at the separators outside of parentheses, and strip the parts."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0:
            break
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise ArgumentError(f"strategy {text!r}: the parentheses do not match.")
    return [part.strip() for part in parts]


def _parse_part(text: str) -> Strategy:
    """A strategy from its name and options; a field of several names takes all values without."""
    match = re.fullmatch(rf"({_NAME})(?:\((.*)\))?", text)
    if match is None:
        raise STRATEGIES.unknown(text)
    kind: Any = STRATEGIES.get(match[1])
    inner, fields = match[2] or "", [field.name for field in dataclasses.fields(kind)]
    hints = get_type_hints(kind) if inner else {}  # slow, and plans parse hundreds of names
    options: dict[str, Any] = {}
    for item in filter(None, split(inner, ",")):
        named = re.fullmatch(rf"({_NAME})\s*=\s*(.*)", item)
        key, value = (named[1], named[2]) if named else ("", item)
        if not key and fields and hints[fields[0]] == tuple[str, ...]:
            options[fields[0]] = (*options.get(fields[0], ()), value)
            continue
        key = key or next(iter(fields[len(options) :]), "")
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise ArgumentError(f"strategy {text!r}: no option {key or item!r}; options: {known}.")
        try:
            options[key] = TypeAdapter(hints[key]).validate_python(value)
        except ValidationError:
            raise ArgumentError(
                f"strategy {text!r}: {key} must be {_takes(hints[key])}, got {value!r}."
            ) from None
    for field in dataclasses.fields(kind):
        if field.default is dataclasses.MISSING and field.name not in options:
            raise ArgumentError(
                f"strategy {text!r} needs {field.name}: write {kind.name}({field.name}=…)."
            )
    made: Strategy = kind(**options)
    return made


def spell_value(value: Any) -> str:
    """The value of an option as strategies are written."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _takes(hint: Any) -> str:
    """What an option takes, in words."""
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if hint == tuple[str, ...]:
        return "strategies"
    return {bool: "true or false", float: "a number", int: "a whole number"}.get(hint, "a text")


class StrategyOption(NamedTuple):
    """One option of a strategy; `default` is None where a value must be given."""

    name: str
    kind: str
    default: Any
    help: str


class StrategyDescription(NamedTuple):
    """A strategy by name: one sentence, and its options in the order they may be given in."""

    name: str
    summary: str
    options: tuple[StrategyOption, ...]


def describe(name: str) -> StrategyDescription:
    """What a strategy does, and its options with kinds, defaults and one line each.

    Example:
        >>> [(option.name, option.default) for option in describe("race").options]
        [('members', ('raw', 'sacm')), ('epochs', 4)]
    """
    kind: Any = STRATEGIES.get(name)
    hints = get_type_hints(kind)
    # `name: sentence` lines of docstrings; longer sentences go on in indented lines.
    texts = "\n\n".join(base.__doc__ or "" for base in reversed(kind.__mro__))
    lines = re.findall(r"^ *(\w+): (.+(?:\n(?! *\w+: ) +.+)*)", texts, flags=re.MULTILINE)
    helps = {name: " ".join(words.replace("``", "").split()) for name, words in lines}
    options = []
    for field in dataclasses.fields(kind):
        takes = _takes(hints[field.name]).removeprefix("one of ").removeprefix("a ")
        default = None if field.default is dataclasses.MISSING else field.default
        options.append(StrategyOption(field.name, takes, default, helps.get(field.name, "")))
    summary = (kind.__doc__ or "").partition("\n\n")[0]
    return StrategyDescription(kind.name, " ".join(summary.split()), tuple(options))
