"""Find the window among the arguments of a model's forward, and put another in its place."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Arguments = tuple[Args, Kwargs]
InputArg = int | str | Callable[[Args, Kwargs], Tensor]
WindowLayout = Literal["BLC", "BCL"]


class WindowArgument:
    """Picks the window out of `(args, kwargs)` and turns it into `[B, L, C]`.

    The arguments are those of `attach`; `channels` is None until a window tells it.
    """

    def __init__(
        self, model: nn.Module, input_arg: InputArg, layout: WindowLayout, channels: int | None
    ) -> None:
        if layout not in ("BLC", "BCL"):
            raise ArgumentError(f"window_layout must be 'BLC' or 'BCL', got {layout!r}.")
        self.layout, self.channels = layout, channels
        self.model_name = type(model).__name__
        self.pick: Any = input_arg if callable(input_arg) else _find_argument(model, input_arg)

    @property
    def can_replace(self) -> bool:
        """Whether `replace` works: not for a window that a user's function computes."""
        return isinstance(self.pick, WindowPath)

    def raw(self, args: Args, kwargs: Kwargs) -> Tensor:
        """Return the tensor as the model receives it, batch first."""
        try:
            window = self.pick(args, kwargs)
        except (AttributeError, LookupError, TypeError) as error:  # of a user's function
            raise ArgumentError(
                f"{self.model_name}.forward: input_arg raised {type(error).__name__}: {error}; the "
                f"call has {len(args)} positional arguments and the keywords {[*kwargs]}."
            ) from error
        if not isinstance(window, Tensor):
            where = f"argument {self.pick}" if self.can_replace else "input_arg"
            raise ArgumentError(
                f"{self.model_name}.forward: {where} should give the window tensor but gave "
                f"{type(window).__name__}; say which argument it is with input_arg=…, or with a "
                "function (args, kwargs) -> tensor if the window is inside a dict."
            )
        return window

    def __call__(self, args: Args, kwargs: Kwargs) -> Tensor:
        """Return the window `[B, L, C]`."""
        window = self.raw(args, kwargs)
        if window.dim() == 2 and self.channels in (1, None):
            return window.unsqueeze(-1)
        if window.dim() != 3:
            raise ArgumentError(
                f"{self.model_name}.forward: the window must have three dimensions "
                f"({self.layout}), got shape {list(window.shape)}."
            )
        window = window.transpose(1, 2) if self.layout == "BCL" else window
        if self.channels is not None and window.shape[2] != self.channels:
            raise ArgumentError(
                f"{self.model_name}.forward: a window {list(window.shape)} [B, L, C] has "
                f"{window.shape[2]} channels, but attach was told channels={self.channels}; "
                "check channels=, input_arg= and window_layout=."
            )
        return window


@dataclass(frozen=True)
class WindowPath:
    """The way to a window inside nested arguments; a function for `attach(input_arg=…)`.

    ``WindowPath((0, "x"))`` is `x` in the dict that is the first argument. Unlike a lambda it can
    be pickled, and it can put another window in the place of the old one.
    """

    steps: tuple[int | str, ...]  # position among the arguments, then keys, positions or fields
    columns: tuple[int, ...] | None = None  # the channels that are the window; None for all
    name: str | None = None  # of the argument, if a call may use it instead of the position

    def __str__(self) -> str:
        return " → ".join(map(str, self.steps)) if self.name is None else repr(self.name)

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        """Return the window among the arguments of forward; None if there is no such argument."""
        value, steps = self._begin(args, kwargs)
        for step in steps:
            value = self._enter(value, step)
        if self.columns is None or not isinstance(value, Tensor):
            return value
        return value[..., list(self.columns)]

    def replace(self, args: Args, kwargs: Kwargs, window: Tensor) -> Arguments:
        """Return the arguments of forward with another window; the old ones are not changed."""
        holder, steps = self._begin(args, kwargs)
        changed = self._put(holder, steps, window)
        return (args, changed) if holder is kwargs else (changed, kwargs)

    def _begin(self, args: Args, kwargs: Kwargs) -> tuple[Any, tuple[int | str, ...]]:
        """Return what holds the argument, and the steps from there."""
        if self.name is not None and (self.name in kwargs or self.steps[0] not in range(len(args))):
            return kwargs, (self.name, *self.steps[1:])
        if args or self.steps[0] not in range(len(kwargs)):
            return args, self.steps
        return kwargs, (list(kwargs)[int(self.steps[0])], *self.steps[1:])

    def _enter(self, holder: Any, step: int | str) -> Any:
        try:
            return getattr(holder, str(step)) if _has_fields(holder) else holder[step]
        except (AttributeError, IndexError, KeyError, TypeError):
            raise ArgumentError(
                f"there is no window at {self} among the arguments of forward: "
                f"{type(holder).__name__} has no {step!r}."
            ) from None

    def _put(self, holder: Any, steps: Sequence[int | str], window: Tensor) -> Any:
        """Return a copy of the holder with the window at the end of the steps."""
        if not steps:
            if self.columns is None:
                return window
            columns = torch.tensor(self.columns, device=holder.device)
            return holder.index_copy(-1, columns, window.to(holder.dtype))
        step = steps[0]
        inner = self._put(self._enter(holder, step), steps[1:], window)
        if isinstance(holder, Mapping):
            return {**holder, step: inner}
        if _has_fields(holder):
            return dataclasses.replace(holder, **{str(step): inner})
        values = [inner if position == step else value for position, value in enumerate(holder)]
        return type(holder)(*values) if hasattr(holder, "_fields") else type(holder)(values)


def _has_fields(holder: Any) -> bool:
    """Return whether the parts of a holder are attributes: a dataclass that is no mapping."""
    return dataclasses.is_dataclass(holder) and not isinstance(holder, Mapping)


def _find_argument(model: nn.Module, input_arg: int | str) -> WindowPath:
    """Look an argument up in the signature of forward."""
    if not isinstance(input_arg, int | str) or isinstance(input_arg, bool):
        raise ArgumentError(
            f"input_arg must be a position, a name or a function, got {input_arg!r}."
        )
    parameters = inspect.signature(model.forward).parameters
    kinds = {p.kind for p in parameters.values()}
    positional = [name for name, p in parameters.items() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if isinstance(input_arg, int):
        is_named = 0 <= input_arg < len(positional)
        if is_named or (input_arg >= 0 and inspect.Parameter.VAR_POSITIONAL in kinds):
            return WindowPath((input_arg,), name=positional[input_arg] if is_named else None)
    elif input_arg in parameters or inspect.Parameter.VAR_KEYWORD in kinds:
        position = positional.index(input_arg) if input_arg in positional else input_arg
        return WindowPath((position,), name=input_arg)
    raise ArgumentError(
        f"input_arg={input_arg!r} is no argument of {type(model).__name__}.forward, which takes "
        f"{', '.join(parameters) or 'none'}."
    )
