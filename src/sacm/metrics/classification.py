"""Classification quality over all samples, whatever the batch size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

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
        self._logits: list[Tensor] = []
        self._labels: list[Tensor] = []

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch of logits [B, K] and class indices [B]. Non-finite logits are a failure."""
        self._check(logits, labels)
        self._logits.append(logits.detach().cpu().double())
        self._labels.append(labels.detach().cpu().long())
        self.samples += len(labels)

    @property
    def logits(self) -> Tensor:
        """Those of all samples, [N, K]."""
        return torch.cat(self._logits)

    @property
    def labels(self) -> Tensor:
        """Those of all samples, [N]."""
        return torch.cat(self._labels)

    def compute(self) -> ClassificationReport:
        """The quality of everything seen so far."""
        # Imported here because it brings pandas, which answering a request does not need.
        from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, recall_score

        if not self.samples:
            raise SACMError("no sample was evaluated, so there is no accuracy to report")
        truth, predicted = self.labels.numpy(), self.logits.argmax(dim=1).numpy()
        classes = self._logits[0].shape[1]
        # Named labels, because scikit-learn warns when a predicted class never occurs.
        recall = recall_score(truth, predicted, labels=np.unique(truth), average="macro")
        confusion = confusion_matrix(truth, predicted, labels=np.arange(classes))
        losses = functional.cross_entropy(self.logits, self.labels, reduction="none")
        return ClassificationReport(
            samples=self.samples,
            classes=classes,
            accuracy=float(accuracy_score(truth, predicted)),
            balanced_accuracy=float(recall),
            macro_f1=float(f1_score(truth, predicted, average="macro")),
            nll=float(losses.numpy().mean()),
            confusion=tuple(tuple(row) for row in confusion.tolist()),
        )

    def _check(self, logits: Tensor, labels: Tensor) -> None:
        expected = [len(labels), self._logits[0].shape[1] if self._logits else logits.shape[-1]]
        if list(logits.shape) != expected or labels.ndim != 1 or not logits.shape[-1]:
            raise ArgumentError(
                f"logits must be [B, K] and labels [B] with the same K in every batch, got"
                f" {list(logits.shape)} and {list(labels.shape)} where {expected} was expected"
            )
        outside = ((labels < 0) | (labels >= logits.shape[1])).nonzero()
        if len(outside):
            sample = int(outside[0])
            raise ArgumentError(
                f"label {int(labels[sample])} of sample {self.samples + sample} is not one of the"
                f" {logits.shape[1]} classes"
            )
        bad = (~torch.isfinite(logits)).nonzero()
        if len(bad):
            sample, column = bad[0].tolist()
            raise SACMError(
                f"logit is {float(logits[sample, column])} at sample {self.samples + sample}, class"
                f" {column}; an accuracy over it would hide a failed run"
            )
