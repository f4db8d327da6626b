"""A strategy that is told what was broken on purpose: an upper bound for finding faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sacm.strategies.base import Prepared, Strategy
from sacm.types import TaskName


@dataclass(frozen=True)
class Oracle(Strategy):
    """Know which values were broken on purpose, and treat just those as guard would.

    For forecasting runs with a contamination: what perfect detection reaches, for comparison. On
    other data it does nothing.

    repair: Repair inputs as well; false only leaves broken targets out of the loss.
    """

    name: ClassVar[str] = "oracle"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    repair: bool = True

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Repair or leave out what is known to be broken."""
        from sacm.quality.recording import read_recording
        from sacm.quality.repair import RepairModel

        if data.broken is None:
            return super().prepare(data, window=window)
        recording = read_recording(data)
        at, rows = recording.training_part()
        learnt = np.arange(len(data.values))[:, None] < data.splits.val.stop
        broken = data.broken & learnt
        values, weights = data.values.copy(), np.where(broken, 0.0, 1.0).astype(np.float32)
        if self.repair:
            given = np.asarray(recording.values, np.float64)
            model = RepairModel.learn(given[at], data.broken[at], rows)
            repaired = model.fill(np.where(learnt, given, 0.0), broken, recording.parts())
            values = np.where(broken, repaired, values).astype(values.dtype)
        if data.observed is not None:
            weights = weights * data.observed
        found = replace(data, values=values, observed=weights)
        return super().prepare(found, window=window)
