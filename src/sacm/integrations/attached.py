"""What the loops of other libraries have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from torch import nn

from sacm.errors import ArgumentError
from sacm.inject.modulator import CapacityModulator
from sacm.inject.state import MODULATOR
from sacm.inject.window_argument import InputArg, WindowArgument, WindowLayout
from sacm.integrations.window_path import WindowPath
from sacm.quality.protect import Protection, protect, unprotect, window_guard_of


class WindowedNetwork(NamedTuple):
    """A network inside another library's model, and the window among its arguments.

    Attributes:
        network: The module whose forward takes the windows.
        channels: Number of channels of a window; 0 if it is not known.
        input_arg: The window among the arguments of forward.
        window_layout: Order of the dimensions of the window.
    """

    network: nn.Module
    channels: int
    input_arg: InputArg = 0
    window_layout: WindowLayout = "BLC"


class PathProtection(Protection):
    """`Protection` for a window that lies deeper in the arguments of forward."""

    def __init__(self, guard: Any, argument: WindowArgument, path: WindowPath) -> None:
        super().__init__(guard, argument)
        self.path = path

    def __call__(
        self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of `forward` with the window repaired."""
        return self.path.replace(args, kwargs, self._repair(self.path(args, kwargs)))


def protect_network(found: WindowedNetwork, guard: Any) -> None:
    """Make a network repair its windows; one that repairs them already gets the new guard."""
    module = window_guard_of(guard)
    if found.channels and module.channels != found.channels:
        raise ArgumentError(
            f"{type(found.network).__name__} takes windows with {found.channels} channels, but the "
            f"guard was fitted on {module.channels}."
        )
    network = unprotect(found.network)
    if not isinstance(found.input_arg, WindowPath):
        if callable(found.input_arg):
            raise ArgumentError(
                "the window is picked by a function, which cannot put a repaired window back: "
                "name the argument, or pass a WindowPath."
            )
        protect(network, module, found.input_arg, found.window_layout)
        return
    path = found.input_arg
    window = WindowArgument(network, path, found.window_layout, module.channels)
    network.register_forward_pre_hook(PathProtection(module, window, path), with_kwargs=True)


def modulator_of(model: nn.Module) -> CapacityModulator | None:
    """The modulator of a model that is attached already."""
    found = getattr(model, MODULATOR, None)
    return found if isinstance(found, CapacityModulator) else None


def check_optimizers(modulator: CapacityModulator, optimizers: Iterable[Any]) -> None:
    """Refuse optimizers that were made too early to hold the modulator's scalars."""
    held = {
        id(parameter)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    lacking = [name for name, scalar in modulator.named_parameters() if id(scalar) not in held]
    if lacking:
        raise ArgumentError(
            f"the optimizer does not hold SACM's {', '.join(lacking)}: it was made before the "
            "model was attached, or from some of its parameters only; make it from "
            "model.parameters() after attaching."
        )
