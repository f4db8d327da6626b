"""Strategies by name: `raw`, `fixed(0.2)`, `sacm(detrend=none)`, `selective+sacm`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from torch import Tensor, nn

from sacm import registry
from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.registry import Registry
from sacm.strategies.base import (
    CHANGES_NETWORK,
    CombinedRun,
    Concluded,
    Prepared,
    Strategy,
    StrategyRun,
    TrainingContext,
)
from sacm.strategies.committee import Committee, MemberRuns

STRATEGIES: Registry[type[Strategy]] = registry.STRATEGIES
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
StrategyType = TypeVar("StrategyType", bound=type[Strategy])


def register(name: str) -> Callable[[StrategyType], StrategyType]:
    """Give a class decorator that makes a strategy available by name.

    Args:
        name: Letters, digits and underscores. What comes in brackets behind it, as in
            `fixed(p=0.2)`, are the fields of the class, which is a frozen dataclass of numbers,
            texts and booleans; the first paragraph of its docstring is what
            `sacm strategies` shows.

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
        ...         def inputs(self, x):
        ...             return x.clamp(-self.limit, self.limit)
        ...     canonical("clip(2)+sacm")
        'clip(limit=2.0)+sacm'
    """
    if re.fullmatch(_NAME, name) is None:
        raise ArgumentError(
            f"a strategy's name consists of letters, digits and underscores, got {name!r}."
        )

    def add(kind: StrategyType) -> StrategyType:
        STRATEGIES.register(name)(kind)
        kind.name = name
        return kind

    return add


def names() -> list[str]:
    """List the registered strategies, plug-ins included."""
    return STRATEGIES.names()


class Combined(Strategy):
    """Several strategies at once, in the order given."""

    def __init__(self, parts: Sequence[Strategy]) -> None:
        self.parts = tuple(parts)

    def check_task(self, task: str) -> None:
        """Check each."""
        for part in self.parts:
            part.check_task(task)

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """Build with each in turn; at most one of them changes the network."""
        for part in self.parts:
            make = partial(part.build, make)
        return make()

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Begin each: on every member of a committee, but for the strategy that made it."""
        runs: list[StrategyRun] = []
        for part in self.parts:
            if isinstance(model, Committee) and CHANGES_NETWORK not in part.roles:
                members = [part.begin(member, context) for member in model.trained]
                runs.append(MemberRuns(model, members))
            else:
                runs.append(part.begin(model, context))
        return CombinedRun(runs)

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Prepare with each in turn."""
        parts: list[Strategy] = []
        notes: list[str] = []
        for part in self.parts:
            data, fitted, said = part.prepare(data, window=window)
            parts.append(fitted)
            notes += said
        return Prepared(data, Combined(parts), tuple(notes))

    def apply(self, data: Any) -> Any:
        """Apply each in turn."""
        for part in self.parts:
            data = part.apply(data)
        return data

    def inputs(self, x: Tensor) -> Tensor:
        """Apply each in turn."""
        for part in self.parts:
            x = part.inputs(x)
        return x

    def conclude(self, errors: Callable[[Strategy], Tensor]) -> Concluded:
        """Conclude each in turn, in the company of the others."""
        parts, notes = list(self.parts), list[str]()
        for place, part in enumerate(self.parts):

            def errors_with(one: Strategy, place: int = place) -> Tensor:
                return errors(Combined([*parts[:place], one, *parts[place + 1 :]]))

            parts[place], said = part.conclude(errors_with)
            notes += said
        return Concluded(Combined(parts), tuple(notes))

    def count_repairs(self, x: Tensor) -> Tensor | None:
        """What the first part that repairs changes."""
        found = (part.count_repairs(x) for part in self.parts)
        return next((flags for flags in found if flags is not None), None)

    def without_repair(self) -> Strategy:
        """Each without repair."""
        return Combined([part.without_repair() for part in self.parts])

    def training_inputs(self, x: Tensor) -> Tensor:
        """Apply each in turn."""
        for part in self.parts:
            x = part.training_inputs(x)
        return x

    def save(self, folder: Path) -> None:
        """Write what each learnt."""
        for part in self.parts:
            part.save(folder)

    def load(self, folder: Path) -> Strategy:
        """Read what each learnt."""
        return Combined([part.load(folder) for part in self.parts])


def parse(text: str) -> Strategy:
    """A strategy from its name with options, or several joined by `+`.

    `raw` does nothing, so beside others it is left out.
    """
    parts = [_parse_one(part.strip()) for part in re.split(r"\+(?![^()]*\))", text)]
    repeated = {part.name for part in parts if [p.name for p in parts].count(part.name) > 1}
    if repeated:
        raise ArgumentError(f"strategy {text!r} names {repeated.pop()} twice.")
    _check_roles(parts)
    parts = [part for part in parts if part.name != "raw"] or parts
    return parts[0] if len(parts) == 1 else Combined(parts)


def _check_roles(parts: Sequence[Strategy]) -> None:
    """Refuse two strategies that do what only one can do."""
    owners: dict[str, str] = {}
    for part in parts:
        for role in part.roles:
            if role in owners:
                raise ArgumentError(f"{owners[role]} and {part.name} both {role}: use one of them.")
            owners[role] = part.name


def canonical(text: str) -> str:
    """One spelling for one meaning: defaults left out, options in definition order."""
    chosen = parse(text)
    parts = chosen.parts if isinstance(chosen, Combined) else (chosen,)
    return "+".join(_spell(part) for part in parts)


def _spell(part: Strategy) -> str:
    changed = [
        f"{field.name}={spell_value(getattr(part, field.name))}"
        for field in dataclasses.fields(part)  # type: ignore[arg-type]  # all strategies are dataclasses
        if getattr(part, field.name) != field.default
    ]
    return part.name + (f"({','.join(changed)})" if changed else "")


def spell_value(value: Any) -> str:
    """Spell an option's value as strategies are written."""
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _parse_one(text: str) -> Strategy:
    match = re.fullmatch(rf"({_NAME})(?:\((.*)\))?", text)
    if match is None:
        raise STRATEGIES.unknown(text)
    kind = STRATEGIES.get(match[1])
    return kind(**_options(kind, match[2] or "", text))


def _options(kind: type[Strategy], inner: str, text: str) -> dict[str, Any]:
    fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # as above
    hints = get_type_hints(kind) if inner else {}  # slow, and plans parse hundreds of names
    required = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]  # as above
        if field.default is dataclasses.MISSING
    ]
    options: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in inner.split(","))):
        key, _, value = item.rpartition("=")
        key = key.strip() or fields[len(options)] if fields else ""
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise ArgumentError(f"strategy {text!r}: no option {key or item!r}; options: {known}.")
        options[key] = _value(value.strip(), hints[key], text)
    for key in required:
        if key not in options:
            raise ArgumentError(f"strategy {text!r} needs {key}: write {kind.name}({key}=…).")
    return options


def _value(text: str, hint: Any, whole: str) -> Any:
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
