from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from sacm.metrics.anomaly import evaluate_scores
from sacm.metrics.catalogue import metric, order_metrics
from sacm.tasks import get_task


def test_every_number_of_an_anomaly_report_is_known():
    row = evaluate_scores([0.1, 0.9, 0.2, 0.3], [0, 1, 1, 0], 0.5).measures
    ordered = order_metrics(set(row))
    assert set(row) - set(ordered) == {"f1_pa_random", "f1_pa_random_std"}
    assert all(metric(name).higher_is_better for name in ordered)


def test_which_metrics_are_errors():
    names = ("mse", "mae", "mse_raw", "mae_raw", "nll")
    assert not any(metric(name).higher_is_better for name in names)
    assert all(metric(name).higher_is_better for name in ("accuracy", "macro_f1", "f1_pa"))


def test_an_unknown_metric_has_no_direction():
    with pytest.raises(ArgumentError, match="there is no metric 'luck'"):
        metric("luck")
    assert order_metrics({"mse", "luck"}) == ["mse"]


@pytest.mark.parametrize("task", ["forecasting", "classification", "anomaly"])
def test_leading_metrics_are_known(task):
    assert all(metric(name) for name in get_task(task).leading_metrics)


def test_a_point_adjusted_score_never_leads_alone():
    adjusted = [name for name in get_task("anomaly").leading_metrics if "_pa" in name]
    assert len(adjusted) < len(get_task("anomaly").leading_metrics)
    assert all(metric(name).random for name in adjusted)
