"""What the numbers of a run are called, and which way is better: decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from sacm.errors import ArgumentError


@dataclass(frozen=True)
class Metric:
    """One number of a run's row.

    `label` stands in tables, `phrase` in sentences. `share` marks values between 0 and 1, whose
    differences are percentage points. `random` names the entry of the row that holds what random
    scores reach; it is shown wherever the metric is. `descriptive`: neither good nor bad.
    """

    name: str
    label: str
    phrase: str
    higher_is_better: bool
    share: bool = False
    random: str | None = None
    descriptive: bool = False


def _error(name: str, label: str, phrase: str = "") -> Metric:
    return Metric(name, label, phrase or label, higher_is_better=False)


def _score(name: str, label: str, phrase: str = "", *, random: str | None = None) -> Metric:
    return Metric(name, label, phrase or label, higher_is_better=True, share=True, random=random)


_METRICS = {
    metric.name: metric
    for metric in (
        _error("mse", "MSE"),
        _error("mae", "MAE"),
        _error("mse_raw", "MSE, raw units", "MSE in raw units"),
        _error("mae_raw", "MAE, raw units", "MAE in raw units"),
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
        Metric("rate_mean", "mean rate", "mean dropout rate", False, descriptive=True),
        Metric(
            "rate_std", "spread of rates", "spread of the dropout rates", False, descriptive=True
        ),
    )
}

# What describes the random scores and not the model.
_REFERENCES = frozenset(m.random for m in _METRICS.values() if m.random) | {"f1_pa_random_std"}

# What a sentence or a small figure shows; a point-adjusted number is never among them alone.
_LEADING = {
    "forecasting": ("mse", "mae"),
    "classification": ("accuracy", "macro_f1"),
    "anomaly": ("f1_pa", "f1", "vus_pr", "f1_affiliation"),
}


def metric(name: str) -> Metric:
    """What is known about one entry of a run's row."""
    if name not in _METRICS:
        raise ArgumentError(f"unknown metric {name!r}: known are {', '.join(_METRICS)}.")
    return _METRICS[name]


def order_metrics(names: set[str]) -> list[str]:
    """Metrics in the order they are shown in; random references are left out."""
    for name in sorted(names - _REFERENCES):
        metric(name)
    return [name for name in _METRICS if name in names]


def leading(task: str) -> tuple[str, ...]:
    """The metrics that speak for a task, the most important first."""
    return _LEADING[task]
