"""Learn from repaired labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from sacm.strategies.base import Prepared, Strategy, StrategyRun, TrainingContext
from sacm.strategies.fixed import Raw
from sacm.strategies.registry import register
from sacm.types import TaskName

LEAST_FLAGGED = 0.02  # share of the labels; fewer hardly matter, and may be correct


@register("labels")
@dataclass(frozen=True)
class LabelsStrategy(Strategy):
    """Find wrong labels and repair them before training, those of validation cases too.

    Where fewer than 2 % are flagged, all labels stay as they are.

    use: What becomes of a flagged case: it gets the suggested label (relabel), it is left out
        (drop), or it gets the suggested label and counts by its confidence (soft).
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("classification",)

    use: Literal["relabel", "drop", "soft"] = "relabel"

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
        what = "left out" if self.use == "drop" else "replaced"
        note = f"{quality.noise_rate:.0%} of the training labels look wrong: {count} were {what}."
        fitted: Strategy = Raw()
        if self.use == "soft":
            weights = np.where(flagged, quality.confidence, 1).astype(np.float32)
            fitted = CaseWeights(torch.from_numpy(weights))
        kept = ~flagged if self.use == "drop" else slice(None)
        subjects = data.subjects_train
        repaired = replace(
            data,
            X_train=data.X_train[kept],
            y_train=quality.repaired[kept].astype(data.y_train.dtype),
            lengths_train=data.lengths_train[kept],
            subjects_train=None if subjects is None else subjects[kept],
        )
        return Prepared(repaired, fitted, (note,))

    def load(self, folder: Path) -> Strategy:
        """After training nothing is left to do: labels to evaluate on stay as they are."""
        return Raw()


@dataclass(frozen=True, eq=False)
class CaseWeights(Strategy):
    """Every training case counts by a weight of its own, `[N]`."""

    case_weights: Tensor

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        return WeightedCases(self.case_weights)


@dataclass(eq=False)
class WeightedCases(StrategyRun):
    """The weights at work."""

    case_weights: Tensor

    def weights(self, batch: Any, prediction: Tensor) -> Tensor:
        return self.case_weights[batch.positions.cpu()].to(prediction.device)
