"""Know what was broken on purpose: the most that finding faults can be worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.registry import register


@register("oracle")
@dataclass(frozen=True)
class Oracle(Strategy):
    """Know which values were broken on purpose, and treat just those as guard would.

    For runs with contamination (forecasting): what perfect detection reaches, for comparison.

    repair: Repair inputs and targets; false only leaves broken targets out of the loss.
    """

    repair: bool = True

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Repair or leave out what is known to be broken."""
        from sacm.quality.guard import Guard
        from sacm.quality.kinds import STUCK
        from sacm.quality.prepare import repair_for_training
        from sacm.quality.reading import read_subject
        from sacm.quality.series.repair import SeriesRepairer

        broken = getattr(data, "broken", None)
        if broken is None:
            raise ArgumentError("oracle needs data that were broken on purpose: a contamination.")
        flags = np.where(broken, STUCK, 0).astype(np.uint8)
        guard = Guard(window=None).fit(data)
        if self.repair:
            subject = read_subject(data)
            values, pieces, starts = subject.training_rows()
            own = np.concatenate([flags[rows.start : rows.stop] for rows in subject.train])
            guard.repairer_ = SeriesRepairer().fit(values, own, pieces, starts)
        targets: Any = "weigh" if self.repair else "drop"
        found = repair_for_training(data, guard, inputs=self.repair, targets=targets, flags=flags)
        return Prepared(found.data, self)
