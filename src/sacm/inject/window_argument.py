"""Find the window among the arguments of a model's forward."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn

from sacm.errors import ArgumentError

InputArg = int | str | Callable[[tuple[Any, ...], dict[str, Any]], Tensor]
WindowLayout = Literal["BLC", "BCL"]

_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class WindowArgument:
    """Picks the window out of `(args, kwargs)` and turns it into `[B, L, C]`.

    Args:
        model: The model whose forward takes the window.
        input_arg: Position or name of the argument, or a function `(args, kwargs) -> tensor`.
        layout: Order of the dimensions of the window: ``"BLC"`` or ``"BCL"``.
        channels: Number of channels.
    """

    def __init__(
        self, model: nn.Module, input_arg: InputArg, layout: WindowLayout, channels: int
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
        parameters = inspect.signature(model.forward).parameters.values()
        taken = {p.kind for p in parameters}
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, _EITHER)]
        named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, _EITHER)]
        if isinstance(input_arg, int):
            self.position = input_arg
            self.name = positional[input_arg] if 0 <= input_arg < len(positional) else None
            known = input_arg >= 0 and (
                self.name is not None or inspect.Parameter.VAR_POSITIONAL in taken
            )
        else:
            self.name = input_arg
            self.position = positional.index(input_arg) if input_arg in positional else None
            known = input_arg in named or inspect.Parameter.VAR_KEYWORD in taken
        if not known:
            raise ArgumentError(
                f"input_arg={input_arg!r} is no argument of {self.model_name}.forward, which takes "
                f"{', '.join(p.name for p in parameters) or 'none'}."
            )

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
                f"{type(window).__name__}; tell attach which argument it is with input_arg=…"
            )
        return window

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Return the window `[B, L, C]`."""
        window = self.raw(args, kwargs)
        if window.dim() == 2 and self.channels == 1:
            return window.unsqueeze(-1)
        if window.dim() != 3:
            raise ArgumentError(
                f"{self.model_name}.forward: the window must have three dimensions "
                f"({self.layout}), got shape {list(window.shape)}."
            )
        window = window.transpose(1, 2) if self.layout == "BCL" else window
        if window.shape[2] != self.channels:
            raise ArgumentError(
                f"{self.model_name}.forward: a window {list(window.shape)} [B, L, C] has "
                f"{window.shape[2]} channels, but attach was told channels={self.channels}; "
                "check channels=, input_arg= and window_layout=."
            )
        return window
