"""Find the rows that do not belong."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from sacm.data.datasets import HELD_OUT, AnomalyData
from sacm.errors import DataError
from sacm.estimators.base import Estimator, check_share, like_rows
from sacm.inference.detect import (
    choose_threshold,
    read_rows,
    read_telemetry,
    row_scores,
    threshold_of,
)
from sacm.inference.predictor import warn
from sacm.metrics.anomaly import evaluate_scores
from sacm.tasks.anomaly import flag


class AnomalyDetector(OutlierMixin, Estimator):
    """Scores every row of `[T, C]`, learnt from rows that are mostly normal; no labels needed.

    Data are arrays `[T, C]` or `[T]`, pandas or polars frames, or files. Windows begin every
    `stride` rows, in training and in scoring: every row has a score, with a large stride the mean
    over fewer windows. Frames are answered with series that have their index.

    The signs are scikit-learn's: `predict` gives -1 for an alarm and +1 for other rows,
    `decision_function` is negative for alarms, `fit_predict(X)` is `fit(X).predict(X)`. `alarms`
    gives a bool for every row, `anomaly_scores` what rows are judged by, higher is worse.

    See `Estimator` for the attributes of a fitted one.

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

    input_len: int | None
    score_kind: str
    quantile: float

    def fit(self, X: Any, y: None = None) -> Self:
        """Train on rows; `y` is there for scikit-learn and not used."""
        check_share("quantile", self.quantile)
        settings = self._settings("data", score=self.score_kind)
        rows = read_telemetry(X, settings.reading(), held_out=HELD_OUT)
        warn(rows.notes)
        needed = 5 * (self.input_len or 1)
        if len(rows.values) < needed:  # the last fifth must hold a window
            raise DataError(
                f"{rows.name} has {len(rows.values)} rows but training on windows of "
                f"{self.input_len} needs {needed}: use a shorter input_len."
            )
        # A run ends with a test; the last rows are the cheapest.
        test = rows.values[-(self.input_len or len(rows.values) // 10 or 1) :]
        data = AnomalyData(
            name=rows.name,
            train=rows.values,
            test=test,
            labels=np.zeros(len(test), dtype=np.uint8),
            columns=rows.columns or (),
            notes=rows.notes,
        )
        self._train(settings.model_copy(update={"data": rows.name}), data)
        self.predictor_ = choose_threshold(self.predictor_, f"quantile={self.quantile}")
        return self

    @property
    def threshold_(self) -> float:
        """The score from which a row is an alarm."""
        self._check_fitted()
        return threshold_of(self.predictor_)

    def predict(self, X: Any) -> Any:
        """-1 for every row that is an alarm, +1 for the others, `[T]`."""
        return like_rows(np.where(self._flags(X), -1, 1), X, "inlier")

    def alarms(self, X: Any) -> Any:
        """True for every row that is an alarm, `[T]`."""
        return like_rows(self._flags(X), X, "alarm")

    def anomaly_scores(self, X: Any) -> Any:
        """A score for every row, `[T]`; higher is more anomalous."""
        return like_rows(self._scores(X), X, "score")

    def score_samples(self, X: Any) -> Any:
        """Minus the anomaly score `[T]`: lower is worse."""
        return like_rows(-self._scores(X), X, "score_samples")

    def decision_function(self, X: Any) -> Any:
        """Threshold minus score `[T]`; 0 or below is an alarm."""
        return like_rows(-self._scores(X) + self.threshold_, X, "decision")

    def evaluate(self, X: Any, labels: Any) -> dict[str, float | None]:
        """Measures against 0/1 labels `[T]`, the point-adjusted beside those it flatters."""
        return evaluate_scores(self._scores(X), labels, self.threshold_).measures

    def score(self, X: Any, labels: Any) -> float:
        """VUS-PR, which needs no threshold and forgives labels that are a few steps off."""
        report = evaluate_scores(self._scores(X), labels, self.threshold_)
        value = report.measures["vus_pr"]
        if value is None:
            raise DataError(f"VUS-PR is undefined: {report.problems[-1]}.")
        return value

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        rows = read_rows(self.predictor_, X)
        warn(rows.notes)
        return row_scores(self.predictor_, rows)

    def _flags(self, X: Any) -> np.ndarray:
        return flag(self._scores(X), self.threshold_) == 1
