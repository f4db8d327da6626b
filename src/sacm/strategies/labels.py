"""Learn from repaired labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from sacm.strategies.base import Prepared, Strategy
from sacm.strategies.fixed import Raw
from sacm.strategies.registry import register
from sacm.types import TaskName

LEAST_FLAGGED = 0.02  # share of the labels; fewer hardly matter, and may be correct


@register("labels")
@dataclass(frozen=True)
class LabelsStrategy(Strategy):
    """Find wrong labels and replace them before training, those of validation cases too.

    Where fewer than 2 % are flagged, all labels stay as they are.
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("classification",)

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Repair the labels of training and validation cases; test labels are never looked at."""
        from sacm.quality.labels import find_wrong_labels

        quality = find_wrong_labels(data.X_train, data.y_train, groups=data.subjects_train)
        flagged, reason = quality.flagged, quality.reason
        count = f"{flagged.sum():,} of {len(flagged):,}"
        if not reason and flagged.mean() < LEAST_FLAGGED:
            reason = f"{count} look wrong, fewer than {LEAST_FLAGGED:.0%}."
        if reason:
            return Prepared(data, Raw(), (f"The training labels stay as they are: {reason}",))
        note = f"{quality.noise_rate:.0%} of the training labels look wrong: {count} were replaced."
        repaired = replace(data, y_train=quality.repaired.astype(data.y_train.dtype))
        return Prepared(repaired, Raw(), (note,))

    def load(self, folder: Path) -> Strategy:
        """After training nothing is left to do: labels to evaluate on stay as they are."""
        return Raw()
