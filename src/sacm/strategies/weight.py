"""Do not learn from broken targets; inputs stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import register


@register("weight")
@dataclass(frozen=True)
class Weight(Strategy):
    """Leave broken targets out of the loss, without repairing anything (forecasting).

    sensitivity: 1 keeps false flags on healthy series below 1 %; larger values flag more.
    """

    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        if not self.sensitivity > 0:
            raise ArgumentError(f"weight(sensitivity=…) must be positive, got {self.sensitivity}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Mark broken values as not observed."""
        from sacm.data.datasets import ForecastingData
        from sacm.quality.guard import Guard
        from sacm.quality.prepare import repair_for_training

        if not isinstance(data, ForecastingData):
            raise ArgumentError("the strategy weight is for forecasting: other tasks have guard.")
        guard = Guard(self.sensitivity, window=None).fit(data)
        weighed = repair_for_training(data, guard, inputs=False, targets="drop")
        note = f"{weighed.share:.2%} of the training values look broken and do not count."
        return Prepared(weighed.data, self, (note,) if weighed.share else ())
