"""Options that belong together: declared once, and given to a command as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

Command = Callable[..., None]


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
    return takes_parameters(options, make, into=into, first=first)


def takes_parameters(
    options: Sequence[inspect.Parameter], make: Callable[..., Any], *, into: str, first: bool
) -> Callable[[Command], Any]:
    """Decorate a command as `takes`, with options that are no function's parameters."""

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        rest = [parameter for name, parameter in own.items() if name != into]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(**{into: make(**given)}, **values)

        parameters = [*options, *rest] if first else [*rest, *options]
        # Typer reads both. Those of `rest` may follow a `*` in the command.
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate
