"""Where a window lies inside the arguments of a model's forward."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sacm.errors import ArgumentError


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
        found: Any = args or tuple(kwargs.values())
        for step in self.steps:
            found = self._enter(found, step)
        if self.columns is None or not isinstance(found, Tensor):
            whole: Tensor = found  # attach refuses what is no tensor
            return whole
        return found[..., list(self.columns)]

    def replace(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], window: Tensor
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of forward with another window; the old ones are not changed."""
        whole = args or tuple(kwargs.values())
        changed = self._put(whole, self.steps, window)
        if args:
            return changed, kwargs
        return args, dict(zip(kwargs, changed, strict=True))

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
            return window if self.columns is None else _put_columns(holder, self.columns, window)
        step = steps[0]
        inner = self._put(self._enter(holder, step), steps[1:], window)
        if isinstance(holder, Mapping):
            return {**holder, step: inner}
        if _has_fields(holder):
            return dataclasses.replace(holder, **{str(step): inner})
        values = [inner if place == step else value for place, value in enumerate(holder)]
        named = hasattr(holder, "_fields")
        return type(holder)(*values) if named else type(holder)(values)


def _has_fields(holder: Any) -> bool:
    """True for dataclasses that are no mapping, whose parts are attributes."""
    return dataclasses.is_dataclass(holder) and not isinstance(holder, Mapping)


def _put_columns(tensor: Tensor, columns: tuple[int, ...], window: Tensor) -> Tensor:
    """Return a copy of the tensor with some of its last dimension's entries replaced."""
    places = torch.tensor(columns, device=tensor.device)
    return tensor.index_copy(-1, places, window.to(tensor.dtype))
