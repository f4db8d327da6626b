"""What one training forward leaves for its dropout sites: it belongs to one attached model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn


@dataclass
class Call:
    """A forward call in progress, kept so that a surprised site can probe again."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class ModulationState:
    """Rates and scores of the current training forward; never copied or saved with the model."""

    rates: Tensor | None = None  # [B], with its graph
    scores: Tensor | None = None  # [B], detached
    forced: Tensor | None = None  # [B], set by `forced_rates`
    call: Call | None = None
    probing: bool = False
    keep_by_device: dict[Any, Tensor] = field(default_factory=dict)

    def begin(self, call: Call) -> None:
        """Forget the last forward before anything of the next can fail."""
        self.rates = self.scores = None
        self.keep_by_device = {}
        self.call = call

    def keep(self, like: Tensor) -> Tensor | None:
        """Keep probabilities `q = 1 - p` `[B]` on the device of an activation."""
        if self.rates is None:
            return None
        found = self.keep_by_device.get(like.device)
        if found is None:
            found = self.keep_by_device[like.device] = 1 - self.rates.to(like.device)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Copies and checkpoints start between two forwards."""
        return ModulationState().__dict__
