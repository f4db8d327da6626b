"""Repair windows before they reach a trained model, and give the model back."""

from __future__ import annotations

from typing import Any, TypeVar

from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.window_argument import WindowArgument, WindowLayout
from sacm.quality.windows.module import WindowGuard

Model = TypeVar("Model", bound=nn.Module)


class Protection:
    """A forward pre-hook that replaces the window among a model's arguments by its repair.

    The guard is held here and not as a part of the model, so that the model keeps its state dict,
    its children and its precision. It follows the device of the windows that come.
    """

    def __init__(self, guard: WindowGuard, argument: WindowArgument) -> None:
        self.guard = guard
        self.argument = argument

    def __call__(
        self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of `forward` with the window repaired."""
        name, position = self.argument.name, self.argument.position
        if name is not None and name in kwargs:
            return args, {**kwargs, name: self._repair(kwargs[name])}
        if position is not None and position < len(args):
            return (*args[:position], self._repair(args[position]), *args[position + 1 :]), kwargs
        where = f"argument {name!r}" if name is not None else f"argument {position}"
        raise ArgumentError(
            f"{self.argument.model_name} was called without {where}, which protect was told is the "
            "window; check input_arg=."
        )

    def _repair(self, window: object) -> Tensor:
        """The window in the layout it came in."""
        if not isinstance(window, Tensor):
            raise ArgumentError(
                f"{self.argument.model_name}: the window must be a tensor, got "
                f"{type(window).__name__}; tell protect which argument it is with input_arg=."
            )
        if self.guard.mean.device != window.device:
            self.guard.to(window.device)
        if window.dim() == 2 and self.guard.channels == 1:
            return self.guard(window.unsqueeze(-1)).squeeze(-1)
        if self.argument.layout == "BCL" and window.dim() == 3:
            return self.guard(window.transpose(1, 2)).transpose(1, 2)
        return self.guard(window)


def protect(
    model: Model,
    guard: Any,
    input_arg: int | str = 0,
    window_layout: WindowLayout = "BLC",
) -> Model:
    """Make `model` repair its windows before it sees them; in place, without retraining.

    Windows are repaired in evaluation and in training mode. `state_dict()`, parameters and children
    of the model stay as they are; copies, pickles and exported graphs of it repair as well.

    Args:
        model: any module whose `forward` takes a window.
        guard: what `fit_window_guard` returns, or an object whose `module()` returns it, fitted in
            the units that the model is fed with.
        input_arg: the window among the arguments of `forward`, by position or by name.
        window_layout: "BLC" (batch, time, channel) or "BCL"; `[B, L]` is fine for one channel.

    Returns:
        The same model.

    Raises:
        ArgumentError: If the model is protected already or compiled, `input_arg` names no argument,
            or the guard is none. Windows of another length or with other channels than the guard's
            are refused when the model is called.

    Example:
        >>> import torch
        >>> from sacm.quality.windows.fit import fit_window_guard
        >>> rows = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> model = protect(nn.Linear(2, 1), fit_window_guard(rows.numpy(), length=96))
        >>> model(torch.full((1, 96, 2), torch.nan)).isfinite().all()
        tensor(True)
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"protect needs an nn.Module, got {type(model).__name__}.")
    if hasattr(model, "_orig_mod"):
        raise ArgumentError("protect the model itself first, then compile it.")
    if _hooks(model):
        raise ArgumentError(f"{type(model).__name__} is already protected: unprotect it first.")
    if not isinstance(input_arg, int | str) or isinstance(input_arg, bool):
        raise ArgumentError(f"input_arg must be a position or a name, got {input_arg!r}.")
    module = window_guard_of(guard)
    argument = WindowArgument(model, input_arg, window_layout, module.channels)
    model.register_forward_pre_hook(Protection(module, argument), with_kwargs=True)
    return model


def unprotect(model: Model) -> Model:
    """Give the model back as it was before `protect`; a model without it is returned as it is.

    Args:
        model: The model that `protect` was called with, or a copy of it.

    Returns:
        The same model.

    Example:
        >>> model = nn.Linear(2, 2)
        >>> unprotect(model) is model
        True
    """
    for key in _hooks(model):
        del model._forward_pre_hooks[key]
        model._forward_pre_hooks_with_kwargs.pop(key, None)
    return model


def _hooks(model: nn.Module) -> list[int]:
    """Keys of the hooks that `protect` has set; found by type, because copies lose the handle."""
    return [key for key, hook in model._forward_pre_hooks.items() if isinstance(hook, Protection)]


def window_guard_of(guard: Any) -> WindowGuard:
    """Return the window guard itself, or the one that another object's `module()` makes.

    Raises:
        ArgumentError: The object is neither.
    """
    if isinstance(guard, WindowGuard):
        return guard
    made = guard.module() if callable(getattr(guard, "module", None)) else None
    if not isinstance(made, WindowGuard):
        raise ArgumentError(
            f"guard must be a WindowGuard or have a module() that returns one, got "
            f"{type(guard).__name__}."
        )
    return made
