"""Metrics of the robustness protocols, and affiliation F1, which every detector's run has."""

from __future__ import annotations

from sacm.metrics.catalogue import Metric
from sacm_lab.affiliation import affiliation_f1
from sacm_lab.robust.faults import TESTED

_MADE = (
    Metric("mse_last", "MSE, last epoch", "MSE of the last epoch", False),
    Metric("mae_last", "MAE, last epoch", "MAE of the last epoch", False),
    Metric(
        *("accuracy_last_ten", "accuracy, last ten", "mean accuracy of the last ten epochs"),
        higher_is_better=True,
        share=True,
    ),
    Metric("mean_fault_mse", "mean fault MSE", "mean MSE over the faults", False),
    Metric("worst_degradation", "D_w", "the largest degradation", False),
    Metric("clean_mse", "clean MSE", "MSE on clean inputs", False),
    # The error under each fault over the error on clean inputs.
    *(Metric(f"degradation_{fault}", f"D {fault}", f"D {fault}", False) for fault in TESTED),
    Metric(
        *("f1_affiliation", "affiliation F1", "affiliation F1"),
        higher_is_better=True,
        share=True,
        task="anomaly",
        function=affiliation_f1,
    ),
)
METRICS = {metric.name: metric for metric in _MADE}


def __getattr__(name: str) -> Metric:
    """Give a metric as an attribute of this module, which the registry refers to."""
    if name not in METRICS:
        raise AttributeError(name)
    return METRICS[name]
