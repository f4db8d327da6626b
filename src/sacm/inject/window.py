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

InputArg = int | str | Callable[[tuple[Any, ...], dict[str, Any]], Tensor]
WindowLayout = Literal["BLC", "BCL"]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class WindowArgument:
    """Picks the window out of `(args, kwargs)` and turns it into `[B, L, C]`.

    Args:
        model: The model whose forward takes the window.
        input_arg: Position or name of the argument, a `WindowPath`, or another function
            `(args, kwargs) -> tensor`.
        layout: Order of the dimensions of the window: ``"BLC"`` or ``"BCL"``.
        channels: Number of channels; None until a window tells it.
    """

    def __init__(
        self, model: nn.Module, input_arg: InputArg, layout: WindowLayout, channels: int | None
    ) -> None:
        if layout not in ("BLC", "BCL"):
            raise ArgumentError(f"window_layout must be 'BLC' or 'BCL', got {layout!r}.")
        self.layout = layout
        self.channels = channels
        self.model_name = type(model).__name__
        self.pick = input_arg if callable(input_arg) else None
        self.position: int | None = None
        self.name: str | None = None
        if not callable(input_arg):
            self._resolve(model, input_arg)

    def _resolve(self, model: nn.Module, input_arg: int | str) -> None:
        """Look the argument up in the signature of forward."""
        if not isinstance(input_arg, int | str) or isinstance(input_arg, bool):
            raise ArgumentError(
                f"input_arg must be a position, a name or a function, got {input_arg!r}."
            )
        parameters = inspect.signature(model.forward).parameters.values()
        kinds = {p.kind for p in parameters}
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, _EITHER)]
        named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, _EITHER)]
        if isinstance(input_arg, int):
            self.position = input_arg
            self.name = positional[input_arg] if 0 <= input_arg < len(positional) else None
            exists = input_arg >= 0 and (
                self.name is not None or inspect.Parameter.VAR_POSITIONAL in kinds
            )
        else:
            self.name = input_arg
            self.position = positional.index(input_arg) if input_arg in positional else None
            exists = input_arg in named or inspect.Parameter.VAR_KEYWORD in kinds
        if not exists:
            raise ArgumentError(
                f"input_arg={input_arg!r} is no argument of {self.model_name}.forward, which takes "
                f"{', '.join(p.name for p in parameters) or 'none'}."
            )

    @property
    def can_replace(self) -> bool:
        """Whether `replace` works: not for a window that a user's function computes."""
        return self.pick is None or isinstance(self.pick, WindowPath)

    def raw(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Return the tensor as the model receives it, batch first."""
        window: Any = None
        if self.pick is not None:
            window = self.pick(args, kwargs)
        elif self.name is not None and self.name in kwargs:
            window = kwargs[self.name]
        elif self.position is not None and self.position < len(args):
            window = args[self.position]
        if not isinstance(window, Tensor):
            argument = self.position if self.name is None else repr(self.name)
            where = "input_arg" if self.pick is not None else f"argument {argument}"
            raise ArgumentError(
                f"{self.model_name}.forward: {where} should give the window tensor but gave "
                f"{type(window).__name__}; say which argument it is with input_arg=…, or with a "
                "function (args, kwargs) -> tensor if the window is inside a dict."
            )
        return window

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
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

    def replace(self, args: tuple[Any, ...], kwargs: dict[str, Any], window: Tensor) -> Arguments:
        """Return the arguments with another window, in the layout of `raw`; the old ones stay."""
        if isinstance(self.pick, WindowPath):
            return self.pick.replace(args, kwargs, window)
        if self.name is not None and self.name in kwargs:
            return args, {**kwargs, self.name: window}
        position = self.position or 0
        return (*args[:position], window, *args[position + 1 :]), kwargs


@dataclass(frozen=True)
class WindowPath:
    """The way to a window inside nested arguments; a function for `attach(input_arg=…)`.

    Unlike a lambda it can be pickled, and it can put another window in the place of the old one.

    Attributes:
        steps: The position among the arguments, then keys, positions or field names further in.
        columns: The channels of the tensor found there that are the window; None for all.

    Example:
        >>> path = WindowPath((0, "insample_y"))
        >>> path(({"insample_y": torch.zeros(2, 8, 1)},), {}).shape
        torch.Size([2, 8, 1])
    """

    steps: tuple[int | str, ...]
    columns: tuple[int, ...] | None = None

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Return the window among the arguments of forward."""
        holder: Any = args or tuple(kwargs.values())
        for step in self.steps:
            holder = self._enter(holder, step)
        if self.columns is None or not isinstance(holder, Tensor):
            whole: Tensor = holder  # the caller refuses what is no tensor
            return whole
        return holder[..., list(self.columns)]

    def replace(self, args: tuple[Any, ...], kwargs: dict[str, Any], window: Tensor) -> Arguments:
        """Return the arguments of forward with another window; the old ones are not changed."""
        changed = self._put(args or tuple(kwargs.values()), self.steps, window)
        return (changed, kwargs) if args else (args, dict(zip(kwargs, changed, strict=True)))

    def _enter(self, holder: Any, step: int | str) -> Any:
        """Go one step further in."""
        try:
            return getattr(holder, str(step)) if _has_fields(holder) else holder[step]
        except (AttributeError, IndexError, KeyError, TypeError):
            way = " → ".join(map(str, self.steps))
            raise ArgumentError(
                f"there is no window at {way} among the arguments of forward: "
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
