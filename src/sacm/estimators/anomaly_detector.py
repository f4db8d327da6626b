"""Find the rows that do not belong."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from sacm.data.datasets import AnomalyData
from sacm.errors import ArgumentError
from sacm.estimators.base import Estimator
from sacm.inference import detect
from sacm.inference.predictor import warn
from sacm.metrics.anomaly import evaluate_scores


class AnomalyDetector(OutlierMixin, Estimator):
    """Scores every row of `[T, C]`, learnt from rows that are mostly normal; no labels needed.

    Data are arrays `[T, C]` or `[T]`, pandas frames, or files. The score of a row is the mean over
    its windows, which begin every `stride` rows. Answers are in the order of the rows, with
    scikit-learn's signs. See `Estimator` for the attributes of a fitted one.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> detector = AnomalyDetector("iTransformer", input_len=20, size="small", epochs=1)
        >>> detector.fit(rows).alarms(rows).shape
        (300,)
    """

    _task = "anomaly"
    # All rows are for training, without a grid; `score` is the method.
    _without = ("id", "frequency", "resample", "split", "scaling", "score")
    _added: ClassVar = {
        "score_kind": ("native", "The detector's own score, native, or its reconstruction error."),
        "quantile": (0.95, "Share of the validation scores, of the last fifth, below an alarm."),
    }

    def fit(self, X: Any, y: None = None) -> Self:
        """Train on rows; `y` is there for scikit-learn and not used."""
        if not isinstance(self.quantile, Real) or not 0 < float(self.quantile) < 1:
            raise ArgumentError(f"quantile must be between 0 and 1, got {self.quantile!r}.")
        settings = self._settings("data", score=self.score_kind)
        rows = detect.read_telemetry(X, settings.reading())
        warn(rows.notes)
        test = rows.values[-(self.input_len or len(rows.values) // 10 or 1) :]  # a run needs a test
        labels, columns = np.zeros(len(test), dtype=np.uint8), rows.columns or ()
        data = AnomalyData(rows.name, rows.values, test, labels, columns, notes=rows.notes)
        self._train(settings.model_copy(update={"data": rows.name}), data)
        self.predictor_ = detect.choose_threshold(self.predictor_, f"quantile={self.quantile}")
        return self

    @property
    def threshold_(self) -> float:
        """The score from which a row is an alarm."""
        threshold: Any = self._fitted.threshold  # every detector has one
        return float(threshold)

    def predict(self, X: Any) -> np.ndarray:
        """-1 for every row that is an alarm, +1 for the others, `[T]`."""
        return np.where(self.alarms(X), -1, 1)

    def alarms(self, X: Any) -> np.ndarray:
        """True for every row that is an alarm, `[T]`."""
        return self.anomaly_scores(X) >= self.threshold_

    def anomaly_scores(self, X: Any) -> np.ndarray:
        """A score for every row, `[T]`; higher is more anomalous."""
        rows = detect.read_rows(self._fitted, X)
        warn(rows.notes)
        return detect.row_scores(self.predictor_, rows)

    def decision_function(self, X: Any) -> np.ndarray:
        """Threshold minus score `[T]`; 0 or below is an alarm."""
        return self.threshold_ - self.anomaly_scores(X)

    def evaluate(self, X: Any, labels: Any) -> dict[str, float | None]:
        """Measures against 0/1 labels `[T]`, the point-adjusted beside those it flatters."""
        return evaluate_scores(self.anomaly_scores(X), labels, self.threshold_).measures
