"""Compute registered metrics from what the test of a run gives; see `catalogue.register`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.errors import SACMWarning
from sacm.metrics.catalogue import Metric, registered_metrics

Row = dict[str, float | None]


class RegisteredForecastMetrics:
    """Collects the registered forecasting metrics batch by batch: exact means over windows."""

    def __init__(self) -> None:
        self._metrics = registered_metrics("forecasting")
        self._totals: Row = {metric.name: 0.0 for metric in self._metrics}
        self._windows = 0

    def update(self, prediction: Tensor, target: Tensor, *, observed: Tensor | None = None) -> None:
        """Add predictions and targets, both `[B, H, C]`; None observed everything."""
        if not self._metrics:
            return
        prediction, target = prediction.detach().cpu(), target.detach().cpu()
        seen = torch.ones_like(target, dtype=torch.bool) if observed is None else observed.cpu()
        self._windows += len(prediction)
        for metric in self._metrics:
            total = self._totals[metric.name]
            if total is not None:
                batch = _compute(metric, _window_sum, prediction, target, seen)
                self._totals[metric.name] = None if batch is None else total + batch

    def compute(self) -> Row:
        """Give the mean of each metric over all windows seen; None where one failed."""
        return {
            name: None if total is None or not self._windows else total / self._windows
            for name, total in self._totals.items()
        }


class RegisteredClassMetrics:
    """Collects logits and labels for the registered classification metrics."""

    def __init__(self) -> None:
        self._metrics = registered_metrics("classification")
        self._logits: list[Tensor] = []
        self._labels: list[Tensor] = []

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add logits `[B, K]` and labels `[B]`; nothing is kept where no metric needs it."""
        if self._metrics:
            self._logits.append(logits.detach().cpu().double())
            self._labels.append(labels.detach().cpu())

    def compute(self) -> Row:
        """Give each metric of the whole test set; None where one failed."""
        if not self._logits:
            return {metric.name: None for metric in self._metrics}
        probabilities = torch.cat(self._logits).softmax(dim=1)
        labels = torch.cat(self._labels)
        return {m.name: _compute(m, float, probabilities, labels) for m in self._metrics}


def compute_anomaly_metrics(scores: np.ndarray, labels: np.ndarray, threshold: float) -> Row:
    """Give the registered metrics of scores `[T]` and labels `[T]`; None where one failed."""
    return {
        metric.name: _compute(metric, float, scores, labels, threshold)
        for metric in registered_metrics("anomaly")
    }


def _compute(metric: Metric, read: Callable[[Any], float], *arguments: Any) -> float | None:
    """Call a metric's function; what goes wrong in it must not cost the run its other results."""
    assert metric.function is not None
    try:
        value = read(metric.function(*arguments))
        problem = "" if math.isfinite(value) else f"it gave {value}"
    except Exception as error:  # the function is somebody else's: anything may happen in it
        value, problem = math.nan, f"{type(error).__name__}: {error}"
    if problem:
        warnings.warn(
            f"the metric {metric.name!r} is left out of this run: {problem.rstrip('.')}.",
            SACMWarning,
            stacklevel=3,
        )
        return None
    return value


def _window_sum(values: Any) -> float:
    """Sum one value a window `[B]`."""
    if not isinstance(values, Tensor) or values.dim() != 1:
        found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"it must return one value a window, [N], and returned {found}")
    return float(values.double().sum())
