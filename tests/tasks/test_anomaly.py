"""Anomaly detection: scores of steps, and the threshold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm import Predictor
from sacm.errors import SACMError
from sacm.metrics.anomaly import quantile_threshold
from sacm.tasks.anomaly import normal_scores, step_scores
from sacm.training import Run
from tests.training.cases import make_data, small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run("anomaly", tmp_path_factory.mktemp("runs"), epochs=1)


def test_the_threshold_never_sees_the_test_part(run: Run) -> None:
    data = make_data("anomaly")
    trained = Predictor.load(run).trained
    windows = run.task.windows(run.settings, data)
    scores = normal_scores(trained, windows, data)
    threshold = quantile_threshold(scores, quantile=0.95)
    data.test[:] = 100.0
    changed = run.task.windows(run.settings, data)
    again = normal_scores(trained, changed, data)
    assert quantile_threshold(again, quantile=0.95) == threshold
    assert run.metrics["report"]["threshold"] == pytest.approx(threshold)


def test_the_score_of_a_step_is_the_mean_over_the_windows_that_cover_it(run: Run) -> None:
    data = make_data("anomaly")
    trained = Predictor.load(run).trained
    windows = run.task.windows(run.settings, data).test
    found = step_scores(trained, windows)
    total, count = np.zeros(len(data.test)), np.zeros(len(data.test))
    with torch.no_grad():
        for index, start in enumerate(windows.starts):
            total[start : start + 20] += trained.model.anomaly_scores(windows.batch([index]).x)[
                0
            ].numpy()
            count[start : start + 20] += 1
    assert (count > 0).all()
    np.testing.assert_allclose(found, total / count, rtol=1e-4, atol=1e-7)


def test_scores_that_are_not_finite_make_no_threshold(run: Run) -> None:
    data = make_data("anomaly")
    data.train[-10] = 1e20
    windows = run.task.windows(run.settings, data)
    with pytest.raises(SACMError, match="the anomaly score of row"):
        normal_scores(Predictor.load(run).trained, windows, data)
