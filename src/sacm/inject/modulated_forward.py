"""The stand-in for the forward of a model that has a `__call__` of its own."""

from __future__ import annotations

import inspect
import types
from typing import Any

from torch import nn

from sacm.inject.functional.owner import OwnerForward
from sacm.inject.modulator import CapacityModulator


class ModulatedForward:
    """Calls the modulator before and after the forward, as hooks do for other models."""

    def __init__(self, model: nn.Module, modulator: CapacityModulator) -> None:
        self.model, self.modulator = model, modulator
        self.original = model.__dict__.get("forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model's own forward with rates for its sites."""
        self.modulator.before_forward(self.model, args, kwargs)
        try:
            return self.own_forward(*args, **kwargs)
        finally:
            self.modulator.after_forward(self.model, args, None)

    @property
    def own_forward(self) -> Any:
        """The model's own forward, or the stand-in that was there before."""
        if self.original is not None:
            return self.original
        return types.MethodType(type(self.model).forward, self.model)

    @property
    def __signature__(self) -> inspect.Signature:
        """Trainers read the arguments of a model from its forward."""
        return inspect.signature(self.own_forward)

    def unwrap(self) -> None:
        """Give the model its forward back."""
        original = self.original
        while isinstance(original, OwnerForward) and not original.wrapped:
            original = original.original
        if original is None:
            self.model.__dict__.pop("forward", None)
        else:
            self.model.__dict__["forward"] = original
