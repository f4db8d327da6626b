"""Classify whole series."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from sacm.data.cases import classification_data
from sacm.errors import ArgumentError, DataError
from sacm.estimators.base import Estimator
from sacm.inference.classify import as_array, case_logits, case_probabilities
from sacm.inference.predictor import Predictor, warn
from sacm.metrics.classification import measure_classes
from sacm.settings import READING


class Classifier(ClassifierMixin, Estimator):
    """Finds the class of each case of `[N, C, L]`.

    `X` is an array `[N, C, L]` or `[N, L]` (NaN after the end of shorter cases), a list of arrays
    `[C, L_i]`, or a frame with one case of one channel a row. A fifth of the training cases chooses
    the epoch; new cases are cut or padded to the longest training case. `strategy="labels"` finds
    and repairs wrong labels. `classes_` are the sorted labels; see `Estimator` for the other
    attributes of a fitted one.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(20, 1, 16))
        >>> classifier = Classifier("iTransformer", size="small", epochs=1)
        >>> classifier.fit(X, np.arange(20) % 2).predict(X).shape
        (20,)
    """

    _task = "classification"
    # Cases come as arrays, whose length is theirs.
    _without = ("input_len", *READING)

    def fit(self, X: Any, y: Any, *, subjects: Any = None) -> Self:
        """Train on cases and their labels; `subjects` `[N]` are kept together in validation."""
        if y is None:
            raise ArgumentError("Classifier requires y to be passed, but the target y is None.")
        data = classification_data(_check_cases(X), _check_labels(y), subjects=subjects)
        warn(data.notes)
        self._train(self._settings(data.name), data)
        return self

    def _adopt(self, predictor: Predictor) -> None:
        super()._adopt(predictor)
        self.classes_ = np.array(predictor.shape.classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `[N, K]` in the order of `classes_`."""
        return case_probabilities(self._fitted, _check_cases(X))

    def predict(self, X: Any) -> np.ndarray:
        """Labels `[N]`."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def evaluate(self, X: Any, y: Any) -> dict[str, float | None]:
        """Accuracy, balanced accuracy, macro F1 and negative log-likelihood."""
        predictor, labels = self._fitted, np.asarray(y)
        unknown = labels[~np.isin(labels, self.classes_)].tolist()
        if unknown:
            raise DataError(f"label {unknown[0]!r} is not among the classes that were trained on.")
        codes = np.searchsorted(self.classes_, labels)
        logits = case_logits(predictor, _check_cases(X), codes)
        return measure_classes(logits, torch.from_numpy(codes)).row()

    def __sklearn_tags__(self) -> Any:
        """NaN ends a case or is a gap in it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.three_d_array = True
        return tags


def _check_labels(y: Any) -> np.ndarray:
    """Labels that name classes, all numbers or all text."""
    labels = np.asarray(y)
    try:
        with np.errstate(invalid="ignore"):  # missing labels are refused in words
            check_classification_targets(labels)
        np.unique(labels)
    except (TypeError, ValueError) as error:
        raise DataError(f"labels y must name classes, all numbers or all text: {error}") from None
    return labels


def _check_cases(X: Any) -> Any:
    """Cases as an array or a list; what cannot be cases is refused in scikit-learn's words."""
    objects = isinstance(X, np.ndarray) and X.dtype.kind == "O"  # cases of different lengths
    if isinstance(X, Tensor) or objects or not (hasattr(X, "__array__") or hasattr(X, "toarray")):
        return as_array(X)
    try:
        return check_array(X, allow_nd=True, ensure_all_finite=False, ensure_min_samples=0)
    except (TypeError, ValueError) as error:
        raise ArgumentError(" ".join(str(error).split())) from None
