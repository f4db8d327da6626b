"""Classify whole series."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array
from torch import Tensor

from sacm.data.cases import classification_data
from sacm.errors import ArgumentError, DataError
from sacm.estimators.base import Estimator, like_rows
from sacm.inference.classify import as_array, case_logits, case_probabilities, case_windows
from sacm.inference.predictor import Predictor, warn
from sacm.metrics.classification import measure_classes
from sacm.settings import READING


class Classifier(ClassifierMixin, Estimator):
    """Finds the class of each case of `[N, C, L]`.

    `X` is an array `[N, C, L]` or `[N, L]` (NaN after the end of shorter cases) or a list of arrays
    `[C, L_i]`. A fifth of the training cases chooses the epoch; new cases are cut or padded to the
    longest training case. A frame holds one case of one channel a row and is answered with a series
    or frame that has its index. `strategy="labels"` finds and repairs wrong labels.

    See `Estimator` for the attributes of a fitted one; `classes_` are the labels as given, sorted.

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
        labels = _check_labels(y)
        data = classification_data(_check_cases(X), labels, subjects=subjects)
        warn(data.notes)
        self._train(self._settings(data.name), data)
        return self

    def _adopt(self, predictor: Predictor) -> None:
        super()._adopt(predictor)
        self.classes_ = np.array(predictor.shape.classes)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities `[N, K]` in the order of `classes_`."""
        return like_rows(self._probabilities(X), X, self.classes_.tolist())

    def predict(self, X: Any) -> Any:
        """Labels `[N]`."""
        best = self._probabilities(X).argmax(axis=1)
        return like_rows(self.classes_[best], X, "class")

    def evaluate(self, X: Any, y: Any) -> dict[str, float | None]:
        """Accuracy, balanced accuracy, macro F1 and negative log-likelihood."""
        self._check_fitted()
        labels = _as_labels(y)
        unknown = labels[~np.isin(labels, self.classes_)].tolist()
        if unknown:
            raise DataError(f"label {unknown[0]!r} is not among the classes that were trained on.")
        codes = np.searchsorted(self.classes_, labels)
        windows = case_windows(self.predictor_, _check_cases(X), codes)
        logits = case_logits(self.predictor_, windows)
        return measure_classes(logits, torch.from_numpy(codes)).row()

    def _probabilities(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return case_probabilities(self.predictor_, _check_cases(X))

    def __sklearn_tags__(self) -> Any:
        """NaN is allowed: it ends a case or is a gap in it. Cases may have several channels."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.three_d_array = True
        return tags


def _as_labels(y: Any) -> np.ndarray:
    """Labels as an array `[N]`."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ArgumentError(f"labels y must be [N], got {list(labels.shape)}.")
    return labels


def _check_labels(y: Any) -> np.ndarray:
    """Labels `[N]` of at least two classes, all numbers or all text."""
    labels = _as_labels(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"label {int(np.argmin(np.isfinite(labels))) + 1} of y is missing.")
    fractions = labels.dtype.kind == "f" and (labels != np.floor(labels)).any()
    if fractions and len(np.unique(labels)) > max(2, len(labels) // 2):
        raise DataError("Unknown label type: continuous. Labels y must name classes.")
    try:
        classes = np.unique(labels)
    except TypeError:
        raise DataError("labels y must be of one type: all numbers or all text.") from None
    if len(classes) < 2:
        raise DataError(f"all {len(labels)} cases have the same label (1 class): two are needed.")
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
