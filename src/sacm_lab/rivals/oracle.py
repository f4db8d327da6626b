"""A strategy that is told what was broken on purpose: an upper bound for finding faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sacm.strategies.base import Prepared, Strategy
from sacm.types import TaskName


@dataclass(frozen=True)
class Oracle(Strategy):
    """Know which values were broken on purpose, and treat just those as guard would.

    For forecasting runs with a contamination: what perfect detection reaches, for comparison. On
    other data it does nothing.

    repair: Repair inputs and targets; false only leaves broken targets out of the loss.
    """

    name: ClassVar[str] = "oracle"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    repair: bool = True

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Repair or leave out what is known to be broken."""
        from sacm.quality.guard import Guard
        from sacm.quality.kinds import STUCK
        from sacm.quality.prepare import repair_for_training
        from sacm.quality.reading import read_subject
        from sacm.quality.series.repair import SeriesRepairer

        if data.broken is None:
            return super().prepare(data, window=window)
        broken = data.broken
        flags = np.where(broken, STUCK, 0).astype(np.uint8)
        guard = Guard(window=None).fit(data)
        if self.repair:
            subject = read_subject(data)
            values, pieces, starts = subject.training_rows()
            own = np.concatenate([flags[rows.start : rows.stop] for rows in subject.train])
            guard.repairer_ = SeriesRepairer().fit(values, own, pieces, starts)
        targets: Any = "weigh" if self.repair else "drop"
        found = repair_for_training(data, guard, inputs=self.repair, targets=targets, flags=flags)
        return super().prepare(found.data, window=window)
