"""What the loops of other libraries have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn

from sacm.errors import ArgumentError
from sacm.inject.modulator import CapacityModulator
from sacm.inject.state import MODULATOR


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
