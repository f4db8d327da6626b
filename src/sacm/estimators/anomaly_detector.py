"""Find the rows that do not belong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from sacm.data.datasets import AnomalyData
from sacm.data.gaps import Policy
from sacm.data.splits import HELD_OUT
from sacm.errors import DataError
from sacm.estimators.base import Estimator, check_share
from sacm.estimators.like_input import like_rows
from sacm.estimators.parameters import parameters_from_settings
from sacm.inference.answer import warn_of
from sacm.inference.detect import read_telemetry, row_scores
from sacm.metrics.anomaly import evaluate_scores
from sacm.metrics.vus import vus_pr
from sacm.tasks import get_task
from sacm.tasks.anomaly import Anomaly, fit_threshold, flag
from sacm.types import TaskName


class AnomalyDetector(Estimator):
    """Scores every row, learnt from rows that are mostly normal; no labels needed.

    Data are arrays `[T]` or `[T, C]`, pandas or polars frames, or files. Rows whose score reaches
    `threshold_` are alarms. Windows begin every `stride` rows, in training and in scoring: every
    row has a score, with a large stride the mean over fewer windows. See `Estimator` for the
    attributes of a fitted one. Frames are answered with series that have their index.

    Two conventions: `anomaly_scores` and `predict` are ours (higher is worse, 1 is an alarm);
    `score_samples`, `decision_function` and `fit_predict` are those of scikit-learn's outlier
    detectors (lower is worse, negative or -1 is an alarm).

    Args:
        backbone: A network from `sacm.backbones.names("anomaly")`.
        input_len: Rows of a window.
        score_kind: The detector's own score ("native") or its "reconstruction" error.
        quantile: Share of the scores of the last fifth of the training rows below the threshold.
        missing: "interpolate", "mask" or "error".
        guard: Whether broken values are found and repaired, in training and prediction.
        accelerator: "cpu", "gpu", "mps" or "auto".
        folder: Keep the training run there; it is not repeated for the same data and settings.
        verbose: Whether progress is shown.
        settings: Any other setting of a run by name, such as `strategy`, `size`, `seed`, `epochs`,
            `learning_rate`, `batch_size` or `overrides` (of the backbone): see `sacm train --help`.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> detector = AnomalyDetector("iTransformer", input_len=20, size="small", epochs=1)
        >>> detector.fit(rows).anomaly_scores(rows).shape
        (300,)
    """

    _task: ClassVar[TaskName] = "anomaly"

    @parameters_from_settings(without=("score", *Anomaly.unused))
    def __init__(
        self,
        backbone: str = "TranAD",
        *,
        input_len: int = 100,
        score_kind: str = "native",
        quantile: float = 0.95,
        missing: Policy = "interpolate",
        guard: bool = False,
        accelerator: str = "cpu",
        folder: str | Path | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None: ...

    def fit(self, X: Any, y: None = None) -> Self:
        """Train on rows; `y` is there for scikit-learn and not used."""
        check_share("quantile", self.quantile)
        rows = read_telemetry(X, missing=self.missing, held_out=HELD_OUT)
        warn_of(rows.notes)
        settings = self._settings(rows.name, score=self.score_kind)
        if len(rows.values) < 5 * self.input_len:  # the last fifth must hold a window
            raise DataError(
                f"{rows.name} has {len(rows.values)} rows but training on windows of "
                f"{self.input_len} needs {5 * self.input_len}: use a shorter input_len."
            )
        # A run ends with a test; the last window is the cheapest.
        test = rows.values[-self.input_len :]
        data = AnomalyData(
            name=rows.name,
            train=rows.values,
            test=test,
            labels=np.zeros(len(test), dtype=np.uint8),
            columns=rows.columns or (),
            notes=rows.notes,
        )
        self._train(settings, data)
        self._columns = rows.columns
        windows = get_task(self._task).windows(self.settings_, data)
        self.threshold_ = fit_threshold(
            self.model_,
            windows,
            self.settings_,
            self.predictor_.strategy,
            quantile=self.quantile,
        )
        self.predictor_ = replace(self.predictor_, threshold=self.threshold_)
        return self

    def anomaly_scores(self, X: Any) -> Any:
        """A score for every row, `[T]`; higher is more anomalous."""
        return like_rows(self._scores(X), X, "score")

    def predict(self, X: Any) -> Any:
        """1 for every row that is an alarm, 0 for the others, `[T]`."""
        return like_rows(flag(self._scores(X), self.threshold_), X, "alarm")

    def score_samples(self, X: Any) -> Any:
        """Minus the anomaly score `[T]`, as scikit-learn's outlier detectors: lower is worse."""
        return like_rows(-self._scores(X), X, "score_samples")

    def decision_function(self, X: Any) -> Any:
        """Threshold minus score `[T]`, as scikit-learn's: zero or below is an alarm."""
        scores = self._scores(X)
        return like_rows(self.threshold_ - scores, X, "decision")

    def fit_predict(self, X: Any, y: None = None) -> Any:
        """Fit, then -1 for alarms among the same rows and 1 for the others, as scikit-learn's."""
        alarms = flag(self.fit(X)._scores(X), self.threshold_)
        return like_rows(np.where(alarms == 1, -1, 1), X, "inlier")

    def evaluate(self, X: Any, labels: Any) -> dict[str, float | None]:
        """Measures against 0/1 labels `[T]`, the point-adjusted beside those it flatters."""
        return evaluate_scores(self._scores(X), labels, self.threshold_).row()

    def score(self, X: Any, labels: Any) -> float:
        """VUS-PR, which needs no threshold and forgives labels that are a few steps off."""
        measure = vus_pr(self._scores(X), labels)
        if measure.value is None:
            raise DataError(f"VUS-PR is undefined: {measure.reason}.")
        return measure.value

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted()
        rows = read_telemetry(X, columns=self._columns, missing=self.missing)
        warn_of(rows.notes)
        return row_scores(self.predictor_, rows)

    def _kept(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"columns": self._columns, "threshold": self.threshold_}, {}

    def _restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._columns = None if values["columns"] is None else tuple(values["columns"])
        self.threshold_ = values["threshold"]
