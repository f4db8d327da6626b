"""Classification: cross-entropy in training, accuracy for selection, the test set touched once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sacm.data.batches import WindowBatches
from sacm.data.datasets import ClassificationData
from sacm.data.windows import classification_windows
from sacm.errors import ArgumentError, DataError
from sacm.metrics.catalogue import compute_metrics
from sacm.metrics.classification import measure_classes
from sacm.settings import ResolvedSettings, RunSettings
from sacm.strategies.base import Step
from sacm.tasks.base import (
    EVALUATION_BATCH,
    FORECASTING_ONLY,
    NetworkShape,
    Result,
    Scaler,
    Task,
    Trained,
    Windows,
    answers,
)
from sacm.tasks.baselines import class_baselines

_BATCH = 64
_WIDE_BATCH, _WIDE = 16, 200_000  # numbers in a case from which a smaller batch is taken


class Classification(Task[ClassificationData]):
    """Cases `[B, L, C]` to logits `[B, K]`."""

    name = "classification"
    default_backbone = "InceptionTime"
    default_strategy = "raw"
    selections = ("accuracy", "loss")
    unused = (*FORECASTING_ONLY, "stride", "score")
    leading_metrics = ("accuracy", "macro_f1")
    # An archive of 40 cases has one step an epoch: too few for batch norm and patience.
    minimum_steps = 20

    def preset(self, settings: RunSettings, data: ClassificationData) -> dict[str, Any]:
        if settings.input_len not in (None, data.length):
            raise ArgumentError(
                f"input_len = {settings.input_len}: cases of {data.name} are classified whole, "
                f"which is {data.length} steps."
            )
        batch = _WIDE_BATCH if data.length * data.channels >= _WIDE else _BATCH
        return {"input_len": data.length, "batch_size": batch}

    def windows(
        self, settings: ResolvedSettings, data: ClassificationData, *, scaler: Scaler = None
    ) -> Windows:
        return classification_windows(data, scaler=scaler)

    def shape(
        self, settings: ResolvedSettings, data: ClassificationData, scaler: Scaler = None
    ) -> NetworkShape:
        if len(data.classes) < 2:
            raise DataError(f"{data.name}: there is only one class, {data.classes[0]!r}.")
        classes = tuple(np.asarray(data.classes).tolist())
        return NetworkShape(data.channels, data.length, classes=classes)

    def losses(self, answer: Tensor, batch: Any) -> Tensor:
        return F.cross_entropy(answer, batch.y, reduction="none")

    def loss(self, step: Step, x: Tensor) -> Tensor:
        logits = step.answer(x)
        if step.weights(logits) is None:
            return F.cross_entropy(logits, step.batch.y)
        return step.mean(step.losses(logits), logits)

    def validate(self, trained: Trained, batches: WindowBatches[Any]) -> float:
        report = measure_classes(*_collect(trained, batches))
        return report.accuracy if trained.settings.select == "accuracy" else report.nll

    def evaluate(self, trained: Trained, windows: Windows, data: ClassificationData) -> Result:
        logits, labels = _collect(trained, WindowBatches(windows.test, EVALUATION_BATCH))
        report = measure_classes(logits, labels)
        row = {**report.row(), **compute_metrics(self.name, logits.softmax(dim=1), labels)}
        return Result(row, asdict(report), report.samples, class_baselines(data, report))


def _collect(trained: Trained, batches: WindowBatches[Any]) -> tuple[Tensor, Tensor]:
    """The logits `[N, K]` in float64 and labels `[N]` of all batches, on the CPU."""
    pairs = [(logits.cpu().double(), batch.y.cpu()) for batch, logits in answers(trained, batches)]
    logits, labels = zip(*pairs, strict=True)
    return torch.cat(logits), torch.cat(labels)
