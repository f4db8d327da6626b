"""`clip`: values far from the mean are pulled in before the backbone sees them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sacm.errors import ArgumentError
from sacm.strategies import Strategy, register


@register("clip")
@dataclass(frozen=True)
class Clip(Strategy):
    """Clip the z-scored values of every window, in training and in testing.

    limit: The largest absolute value that stays.
    """

    limit: float = 3.0

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ArgumentError(f"clip(limit=…) must be positive, got {self.limit}.")

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """`[B, L, C]` to `[B, L, C]`."""
        return x.clamp(-self.limit, self.limit)
