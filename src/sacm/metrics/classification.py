"""Classification quality over all samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sacm.errors import ArgumentError, SACMError


@dataclass(frozen=True)
class ClassificationReport:
    """Quality over `samples` samples."""

    samples: int
    classes: int
    accuracy: float  # share of right answers
    balanced_accuracy: float  # mean recall over the classes that occur in the labels
    macro_f1: float  # mean F1 over the classes that occur in labels or predictions
    nll: float  # mean negative log-likelihood of the true class, in nats
    confusion: tuple[tuple[int, ...], ...]  # counts [true class][predicted class]

    def row(self) -> dict[str, float | None]:
        """The numbers of one table row."""
        names = ("accuracy", "balanced_accuracy", "macro_f1", "nll")
        return {name: getattr(self, name) for name in names}


def measure_classes(logits: Tensor, labels: Tensor) -> ClassificationReport:
    """Report on logits [N, K] of samples with class indices [N]; a non-finite logit is an error."""
    # Imported here because it brings pandas, which answering a request does not need.
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, recall_score

    logits, labels = logits.detach().cpu().double(), labels.detach().cpu().long()
    if logits.ndim != 2 or logits.shape[:1] != labels.shape:
        raise ArgumentError(
            f"logits must be [N, K] and labels [N], got {list(logits.shape)} and "
            f"{list(labels.shape)}."
        )
    if not len(labels):
        raise SACMError("no sample was evaluated, so there is no accuracy to report")
    bad = (~torch.isfinite(logits)).nonzero()
    if len(bad):
        sample, column = bad[0].tolist()
        raise SACMError(
            f"logit is {float(logits[sample, column])} at sample {sample}, class {column}: the run "
            "failed, and there is no accuracy to report"
        )
    truth, predicted = labels.numpy(), logits.argmax(dim=1).numpy()
    # Named labels, because scikit-learn warns when a predicted class never occurs.
    recall = recall_score(truth, predicted, labels=np.unique(truth), average="macro")
    confusion = confusion_matrix(truth, predicted, labels=np.arange(logits.shape[1]))
    losses = functional.cross_entropy(logits, labels, reduction="none")
    return ClassificationReport(
        samples=len(labels),
        classes=logits.shape[1],
        accuracy=float(accuracy_score(truth, predicted)),
        balanced_accuracy=float(recall),
        macro_f1=float(f1_score(truth, predicted, average="macro")),
        nll=float(losses.numpy().mean()),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )
