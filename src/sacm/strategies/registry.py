"""Strategies by name: `raw`, `fixed(0.2)`, `sacm(detrend=none)`, `selective+sacm`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

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
            `fixed(p=0.2)`, are the fields of the class, which is a frozen dataclass of numbers,
            texts and booleans; the first paragraph of its docstring is what
            `sacm strategies` shows.
        aliases: Other names it is found by.

    Raises:
        ArgumentError: If the name is taken or has other characters in it.

    Example:
        >>> from dataclasses import dataclass
        >>> from sacm.registry import temporary_entries
        >>> from sacm.strategies import Strategy, canonical, register
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
        raise ArgumentError(
            f"a strategy's name consists of letters, digits and underscores, got {name!r}."
        )

    def add(kind: StrategyType) -> StrategyType:
        kind.name = name
        return STRATEGIES.register(name, aliases=aliases)(kind)

    return add


def names() -> list[str]:
    """List the registered strategies, plug-ins included."""
    return STRATEGIES.names()


def parse(text: str) -> Strategy:
    """Make a strategy from its name with options, or several joined by `+`.

    `raw` does nothing, so beside others it is left out.

    Raises:
        ArgumentError: A name or an option is not known, or two strategies exclude each other.

    Example:
        >>> parse("selective+sacm(p_max=0.4)").parts[1].p_max
        0.4
    """
    parts = [_parse_one(part) for part in split(text, "+")]
    repeated = {part.name for part in parts if [p.name for p in parts].count(part.name) > 1}
    if repeated:
        raise ArgumentError(f"strategy {text!r} names {repeated.pop()} twice.")
    alone = next((part.name for part in parts if not part.combines), None)
    if alone is not None and len(parts) > 1:
        raise ArgumentError(
            f"strategy {text!r}: {alone} cannot be joined with others; join its members instead."
        )
    _check_roles(parts)
    parts = [part for part in parts if part.name != "raw"] or parts
    return parts[0] if len(parts) == 1 else Combined(parts)


def canonical(text: str) -> str:
    """Spell a strategy in the one way that its meaning has: defaults out, options in order."""
    return spell(*parts_of(parse(text)))


def spell(*parts: Strategy) -> str:
    """The text that `parse` makes these strategies of."""
    return "+".join(map(_spell, parts))


def parts_of(strategy: Strategy) -> tuple[Strategy, ...]:
    """The strategies that act in one; a single one is its only part."""
    return strategy.parts if isinstance(strategy, Combined) else (strategy,)


def without(strategy: Strategy, name: str) -> Strategy:
    """The strategy without the part of this name; nothing is left of that part alone."""
    kept = [part for part in parts_of(strategy) if part.name != name]
    return kept[0] if len(kept) == 1 else Combined(kept)


def split(text: str, separator: str) -> list[str]:
    """Split at the separators outside of parentheses, and strip the parts.

    Raises:
        ArgumentError: The parentheses do not match.

    Example:
        >>> split("raw,race(raw,sacm)", ",")
        ['raw', 'race(raw,sacm)']
    """
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


def spell_value(value: Any) -> str:
    """Spell an option's value as strategies are written."""
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _check_roles(parts: Sequence[Strategy]) -> None:
    """Refuse two strategies that do what only one can do."""
    owners: dict[str, str] = {}
    for part in parts:
        for role in part.roles:
            if role in owners:
                raise ArgumentError(f"{owners[role]} and {part.name} both {role}: use one of them.")
            owners[role] = part.name


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    """The options of a strategy or its class; all of them are dataclasses."""
    return dataclasses.fields(kind)


def _spell(part: Strategy) -> str:
    """The name with the options that are not at their defaults; several names are always told."""
    options: list[str] = []
    for field in _fields(part):
        value = getattr(part, field.name)
        if isinstance(value, tuple):
            options += value
        elif value != field.default:
            options.append(f"{field.name}={spell_value(value)}")
    return part.name + (f"({','.join(options)})" if options else "")


def _parse_one(text: str) -> Strategy:
    match = re.fullmatch(rf"({_NAME})(?:\((.*)\))?", text)
    if match is None:
        raise STRATEGIES.unknown(text)
    kind = STRATEGIES.get(match[1])
    return kind(**_options(kind, match[2] or "", text))


def _options(kind: type[Strategy], inner: str, text: str) -> dict[str, Any]:
    """Options by name; a field of several names takes all values that have none of their own."""
    fields = [field.name for field in _fields(kind)]
    hints = get_type_hints(kind) if inner else {}  # slow, and plans parse hundreds of names
    options: dict[str, Any] = {}
    for item in filter(None, split(inner, ",")):
        key, value = _name_and_value(item)
        if not key and fields and hints[fields[0]] == tuple[str, ...]:
            options[fields[0]] = (*options.get(fields[0], ()), value)
            continue
        key = key or fields[len(options)] if fields else ""
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise ArgumentError(f"strategy {text!r}: no option {key or item!r}; options: {known}.")
        options[key] = _value(value, hints[key], key, text)
    for field in _fields(kind):
        if field.default is dataclasses.MISSING and field.name not in options:
            raise ArgumentError(
                f"strategy {text!r} needs {field.name}: write {kind.name}({field.name}=…)."
            )
    return options


def _name_and_value(item: str) -> tuple[str, str]:
    """`p=0.2` as `p` and `0.2`; the name is empty in `0.2` and in `fixed(p=0.2)`."""
    match = re.fullmatch(rf"({_NAME})\s*=\s*(.*)", item)
    return ("", item) if match is None else (match[1], match[2])


def _value(text: str, hint: Any, key: str, whole: str) -> Any:
    """Read the value of an option by its type.

    Raises:
        ArgumentError: The text is not a value of this type.
    """
    if get_origin(hint) is Literal and text not in get_args(hint):
        raise ArgumentError(
            f"strategy {whole!r}: {key} must be one of {_kind(hint)}, got {text!r}."
        )
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ArgumentError(f"strategy {whole!r}: expected true or false, got {text!r}.")
        return text.lower() == "true"
    if hint in (float, int):
        try:
            return hint(text)
        except ValueError:
            raise ArgumentError(f"strategy {whole!r}: expected a number, got {text!r}.") from None
    return text


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
        >>> [(option.name, option.default) for option in describe("hard_denoise").options]
        [('keep', 0.1), ('kind', 'largest')]
    """
    kind = STRATEGIES.get(name)
    text = inspect.getdoc(kind) or ""
    helps, hints = dict(_option_lines(text)), get_type_hints(kind)
    options = [
        StrategyOption(
            name=field.name,
            kind=_kind(hints[field.name]),
            default=None if field.default is dataclasses.MISSING else field.default,
            required=field.default is dataclasses.MISSING,
            help=helps.get(field.name, ""),
        )
        for field in _fields(kind)
    ]
    summary = " ".join(text.partition("\n\n")[0].split())
    return StrategyDescription(kind.name, summary, tuple(options))


def describe_all() -> list[StrategyDescription]:
    """Describe every registered strategy, plug-ins included."""
    return [describe(name) for name in names()]


def _option_lines(text: str) -> Iterator[tuple[str, str]]:
    """Read `name: sentence` lines of a docstring; longer sentences go on in indented lines."""
    for name, words in re.findall(r"^ *(\w+): (.+(?:\n +(?!\w+: ).+)*)", text, flags=re.MULTILINE):
        yield name, " ".join(words.split())


def _kind(hint: Any) -> str:
    """Name what an option takes, or the values it takes."""
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    if hint == tuple[str, ...]:
        return "strategies"
    return {bool: "true or false", float: "number", int: "whole number"}.get(hint, "text")
