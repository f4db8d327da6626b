"""Metrics by name, with their labels, and those that plug-ins add."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, SACMWarning
from sacm.registry import Registry
from sacm.types import TaskName

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """One number of a run's row.

    `label` stands in tables, `phrase` in sentences. `share` marks values between 0 and 1, whose
    differences are percentage points. `random` names the entry of the row that holds what random
    scores reach; it is shown wherever the metric is. `descriptive`: neither good nor bad.
    `task` and `function` belong to a registered metric: where and from what it is computed.
    """

    name: str
    label: str
    phrase: str
    higher_is_better: bool
    share: bool = False
    random: str | None = None
    descriptive: bool = False
    task: TaskName | None = None
    function: Callable[..., Any] | None = None


METRICS: Registry[Metric] = Registry("metric", missing="unknown")


def register(
    name: str, *, task: TaskName, label: str, higher_is_better: bool, share: bool = False
) -> Callable[[Function], Function]:
    """Give a decorator that adds a metric to the row of every run of a task.

    Args:
        name: The name in rows and files.
        task: The task whose runs it is computed for.
        label: What it is called in tables and sentences.
        higher_is_better: The direction.
        share: Whether values lie between 0 and 1; differences are then percentage points.

    Returns:
        A decorator for a function, which is called with what the task's test gives, all on the
        CPU.

        forecasting: `(prediction, target, observed)`, tensors `[N, H, C]` of one batch of test
        windows in z-scored units, `observed` False where a target was filled in. It returns one
        value a window, `[N]`; the metric is the mean over all test windows, so it does not depend
        on the batch size.

        classification: `(probabilities, labels)`, tensors `[N, K]` and `[N]` of the whole test
        set. It returns one number.

        anomaly: `(scores, labels, threshold)`, arrays `[T]` and `[T]` of the whole test set and
        the threshold from the validation scores. It returns one number.

        A result that is not finite, or an exception, becomes None in the row, with a
        `SACMWarning`.

    Raises:
        ArgumentError: If the name is taken or the task unknown.

    Example:
        >>> from sacm.metrics import catalogue
        >>> from sacm.registry import temporary_entries
        >>> with temporary_entries():
        ...     @catalogue.register(
        ...         "bias", task="forecasting", label="bias", higher_is_better=False
        ...     )
        ...     def bias(prediction, target, observed):
        ...         return ((prediction - target) * observed).mean(dim=(1, 2)).abs()
        ...     catalogue.order_metrics({"bias", "mae"})
        ['mae', 'bias']
    """
    if task not in get_args(TaskName):
        raise ArgumentError(
            f"unknown task {task!r}: choose one of {', '.join(get_args(TaskName))}."
        )

    def add(function: Function) -> Function:
        METRICS.register(name, origin=function)(
            Metric(name, label, label, higher_is_better, share, task=task, function=function)
        )
        return function

    return add


def registered_metrics(task: TaskName) -> list[Metric]:
    """List the metrics that were registered for a task, plug-ins included."""
    return [each for each in METRICS.values() if each.task == task]


def _error(name: str, label: str, phrase: str = "") -> Metric:
    return Metric(name, label, phrase or label, higher_is_better=False)


def _score(name: str, label: str, phrase: str = "", *, random: str | None = None) -> Metric:
    return Metric(name, label, phrase or label, higher_is_better=True, share=True, random=random)


# The scenarios of SensorFault-Bench: the error under each over the error on clean inputs.
_FAULTS = (
    "drift",
    "attenuation",
    "noise",
    "spike",
    "time_stretch",
    "time_compress",
    "stuck_sensor",
    "missing_data",
)
_OWN = (
    _error("mse", "MSE"),
    _error("mae", "MAE"),
    _error("mse_raw", "MSE, raw units", "MSE in raw units"),
    _error("mae_raw", "MAE, raw units", "MAE in raw units"),
    _error("crps", "CRPS"),
    _score("accuracy", "accuracy"),
    _score("balanced_accuracy", "balanced accuracy"),
    _score("macro_f1", "macro F1"),
    _error("nll", "log loss"),
    _score("f1_pa", "F1 (PA)", "point-adjusted F1", random="f1_pa_random"),
    _score("precision_pa", "precision (PA)", "point-adjusted precision"),
    _score("recall_pa", "recall (PA)", "point-adjusted recall"),
    _score(
        "f1_pa_best",
        "best F1 (PA)",
        "point-adjusted F1 at its best threshold",
        random="f1_pa_best_random",
    ),
    _score("f1", "F1"),
    _score("precision", "precision"),
    _score("recall", "recall"),
    _score("f1_best", "best F1", "F1 at its best threshold"),
    _score("f1_pak_area", "PA%K area", "area under F1 of PA%K"),
    _score("auc_pr", "AUC-PR"),
    _score("auc_roc", "AUC-ROC"),
    _score("vus_pr", "VUS-PR"),
    _score("f1_affiliation", "affiliation F1"),
    _score("f1_range", "range-based F1"),
    _error("epochs", "epochs"),
    _error("seconds_per_epoch", "seconds an epoch"),
    _error("train_seconds", "seconds of training"),
    _error("mse_last", "MSE, last epoch", "MSE of the last epoch"),
    _error("mae_last", "MAE, last epoch", "MAE of the last epoch"),
    _score("accuracy_last_ten", "accuracy, last ten", "mean accuracy of the last ten epochs"),
    _error("mean_fault_mse", "mean fault MSE", "mean MSE over the faults"),
    _error("worst_degradation", "D_w", "the largest degradation"),
    _error("clean_mse", "clean MSE", "MSE on clean inputs"),
    *(_error(f"degradation_{fault}", f"D {fault}", f"degradation by {fault}") for fault in _FAULTS),
    Metric("rate_mean", "mean rate", "mean dropout rate", False, descriptive=True),
    Metric("rate_std", "spread of rates", "spread of the dropout rates", False, descriptive=True),
)
for _metric in _OWN:
    METRICS.register(_metric.name)(_metric)

# What describes the random scores and not the model.
_REFERENCES = frozenset(m.random for m in _OWN if m.random) | {"f1_pa_random_std"}


def metric(name: str) -> Metric:
    """Give what is known about one entry of a run's row.

    Raises:
        ArgumentError: If no metric of that name is registered.
    """
    return METRICS.get(name)


def order_metrics(names: set[str]) -> list[str]:
    """Put metrics in the order they are shown in; random references are left out.

    Raises:
        ArgumentError: If one of them is not registered.
    """
    for name in sorted(names - _REFERENCES):
        metric(name)
    return [name for name in METRICS.names() if name in names]


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
