"""Classification quality over all samples, whatever the batch size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, SACMError
from sacm.metrics.intervals import Record


@dataclass(frozen=True)
class ClassificationReport(Record):
    """Quality over `samples` samples.

    Attributes:
        accuracy: share of right answers.
        balanced_accuracy: mean recall over the classes that occur in the labels.
        macro_f1: mean F1 over the classes that occur in labels or predictions.
        nll: mean negative log-likelihood of the true class, in nats.
        confusion: counts [true class][predicted class].
    """

    samples: int
    classes: int
    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    nll: float
    confusion: tuple[tuple[int, ...], ...]


class ClassificationAccumulator:
    """Collects logits batch by batch; the report is made from all of them at once."""

    def __init__(self) -> None:
        self.samples = 0
        self._predicted: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []
        self._losses: list[np.ndarray] = []
        self._classes: int | None = None

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch of logits [B, K] and class indices [B]. Non-finite logits are a failure."""
        self._check(logits, labels)
        scores = logits.detach().cpu().double()
        truth = labels.detach().cpu().long()
        self._losses.append(
            torch.nn.functional.cross_entropy(scores, truth, reduction="none").numpy()
        )
        self._predicted.append(scores.argmax(dim=1).numpy())
        self._labels.append(truth.numpy())
        self.samples += len(truth)

    def compute(self) -> ClassificationReport:
        """The quality of everything seen so far."""
        # Imported here because it brings pandas, which answering a request does not need.
        from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, recall_score

        if self._classes is None or self.samples == 0:
            raise SACMError("no sample was evaluated, so there is no accuracy to report")
        truth, predicted = np.concatenate(self._labels), np.concatenate(self._predicted)
        # Named labels, because scikit-learn warns when a predicted class never occurs.
        recall = recall_score(truth, predicted, labels=np.unique(truth), average="macro")
        confusion = confusion_matrix(truth, predicted, labels=np.arange(self._classes))
        return ClassificationReport(
            samples=self.samples,
            classes=self._classes,
            accuracy=float(accuracy_score(truth, predicted)),
            balanced_accuracy=float(recall),
            macro_f1=float(f1_score(truth, predicted, average="macro")),
            nll=float(np.concatenate(self._losses).mean()),
            confusion=tuple(tuple(row) for row in confusion.tolist()),
        )

    def _check(self, logits: Tensor, labels: Tensor) -> None:
        if logits.ndim != 2 or logits.shape[1] == 0 or labels.shape != logits.shape[:1]:
            raise ArgumentError(
                "logits must be [B, K] and labels [B], got"
                f" {list(logits.shape)} and {list(labels.shape)}"
            )
        self._classes = self._classes or logits.shape[1]
        if logits.shape[1] != self._classes:
            raise ArgumentError(
                f"logits had {self._classes} classes before and have {logits.shape[1]} now"
            )
        outside = ((labels < 0) | (labels >= self._classes)).nonzero()
        if len(outside):
            sample = int(outside[0])
            raise ArgumentError(
                f"label {int(labels[sample])} of sample {self.samples + sample} is not one of the"
                f" {self._classes} classes"
            )
        bad = (~torch.isfinite(logits)).nonzero()
        if len(bad):
            sample, column = bad[0].tolist()
            raise SACMError(
                f"logit is {float(logits[sample, column])} at sample {self.samples + sample}, class"
                f" {column}; an accuracy over it would hide a failed run"
            )
