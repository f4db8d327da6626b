"""Metrics by name, with their labels, and those that plug-ins add."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from torch import Tensor

from sacm import registry
from sacm.errors import ArgumentError, SACMWarning
from sacm.registry import Registry
from sacm.types import TaskName

Function = TypeVar("Function", bound=Callable[..., Any])
Row = dict[str, float | None]


@dataclass(frozen=True)
class Metric:
    """One number of a run's row."""

    name: str
    label: str  # in tables
    phrase: str  # in sentences
    higher_is_better: bool
    share: bool = False  # between 0 and 1: differences are percentage points
    random: str | None = None  # entry of the row with what random scores reach, shown beside it
    task: TaskName | None = None  # of a registered metric: where it is computed
    function: Callable[..., Any] | None = None  # and how


METRICS: Registry[Metric] = registry.METRICS


def register(
    name: str, *, task: TaskName, label: str, higher_is_better: bool, share: bool = False
) -> Callable[[Function], Function]:
    """Give a decorator that adds a metric to the row of every run of a task.

    The function takes what the task's test gives, on the CPU:

    - forecasting: `(prediction, target, observed)`, z-scored tensors `[N, H, C]` of a batch,
      `observed` False where a target was filled in; returns one value a window `[N]`. The metric is
      the mean over all windows.
    - classification: `(probabilities, labels)`, tensors `[N, K]` and `[N]`; returns one number.
    - anomaly: `(scores, labels, threshold, segments)`, arrays `[T]` and the threshold from the
      validation scores; `segments` names the machine of each row. Returns one number.

    It returns None where the metric is not defined. A result that is not finite, or an exception,
    becomes None in the row, with a `SACMWarning`.

    Args:
        name: The name in rows and files.
        task: The task whose runs it is computed for.
        label: What it is called in tables and sentences.
        higher_is_better: The direction.
        share: Whether values lie between 0 and 1; differences are then percentage points.

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
        ['bias', 'mae']
    """
    if task not in get_args(TaskName):
        raise ArgumentError(
            f"unknown task {task!r}: choose one of {', '.join(get_args(TaskName))}."
        )

    def add(function: Function) -> Function:
        entry = Metric(name, label, label, higher_is_better, share, task=task, function=function)
        METRICS.register(name, origin=function)(entry)
        return function

    return add


# The entries of rows in the order they are shown in: name, whether it is an error or a share,
# label in tables, and phrase in sentences where that differs.
_TABLE = (
    ("mse", "error", "MSE"),
    ("mae", "error", "MAE"),
    ("mse_raw", "error", "MSE, raw units", "MSE in raw units"),
    ("mae_raw", "error", "MAE, raw units", "MAE in raw units"),
    ("accuracy", "share", "accuracy"),
    ("balanced_accuracy", "share", "balanced accuracy"),
    ("macro_f1", "share", "macro F1"),
    ("nll", "error", "log loss"),
    ("f1_pa", "share", "F1 (PA)", "point-adjusted F1"),
    ("precision_pa", "share", "precision (PA)", "point-adjusted precision"),
    ("recall_pa", "share", "recall (PA)", "point-adjusted recall"),
    ("f1", "share", "F1"),
    ("precision", "share", "precision"),
    ("recall", "share", "recall"),
    ("f1_best", "share", "best F1", "F1 at its best threshold"),
    ("auc_pr", "share", "AUC-PR"),
    ("auc_roc", "share", "AUC-ROC"),
    ("vus_pr", "share", "VUS-PR"),
    ("epochs", "error", "epochs"),
    ("seconds_per_epoch", "error", "seconds an epoch"),
    ("train_seconds", "error", "seconds of training"),
    ("rate_mean", "error", "mean rate", "mean dropout rate"),
    ("rate_std", "error", "spread of rates", "spread of the dropout rates"),
)
for _name, _kind, *_words in _TABLE:
    _share, _random = _kind == "share", "f1_pa_random" if _name == "f1_pa" else None
    METRICS.register(_name)(Metric(_name, _words[0], _words[-1], _share, _share, _random))


def metric(name: str) -> Metric:
    """Give what is known about one entry of a run's row; an `ArgumentError` if nothing is."""
    return METRICS.get(name)


def order_metrics(names: set[str]) -> list[str]:
    """Put those that are registered in the order they are shown in."""
    return [name for name in METRICS.names() if name in names]


def registered_metrics(task: TaskName) -> list[Metric]:
    """List the metrics that were registered for a task, plug-ins included."""
    return [each for each in METRICS.values() if each.task == task]


def compute_metrics(task: TaskName, *arguments: Any) -> Row:
    """Give the registered metrics of a test set, of forecasts as sums over the windows of a batch.

    The arguments are those of the task's metrics, see `register`; None where one failed.
    """
    read = _window_sum if task == "forecasting" else float
    return {each.name: _compute(each, read, *arguments) for each in registered_metrics(task)}


def mean_over_windows(sums: list[Row], windows: int) -> Row:
    """Give the means of forecasting metrics from what `compute_metrics` gave for each batch."""
    columns = {name: [row[name] for row in sums] for name in (sums[0] if sums else ())}
    return {
        name: None if None in values else math.fsum(v for v in values if v is not None) / windows
        for name, values in columns.items()
    }


def _compute(metric: Metric, read: Callable[[Any], float], *arguments: Any) -> float | None:
    """Call a metric's function; an error in it must not cost the run its other results."""
    assert metric.function is not None
    try:
        result = metric.function(*arguments)
        if result is None:
            return None
        value = read(result)
        if math.isfinite(value):
            return value
        problem = f"it gave {value}"
    except Exception as error:  # the function is not ours
        problem = f"{type(error).__name__}: {error}"
    sentence = f"the metric {metric.name!r} is left out of this run: {problem.rstrip('.')}."
    warnings.warn(sentence, SACMWarning, stacklevel=3)
    return None


def _window_sum(values: Any) -> float:
    """Sum one value a window `[B]`."""
    if not isinstance(values, Tensor) or values.dim() != 1:
        found = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"it must return one value a window, [N], and returned {found}")
    return float(values.double().sum())
