from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm import AnomalyDetector, DataError, SACMError, SACMWarning
from sacm.data import AnomalyData
from sacm.errors import ArgumentError
from sacm.metrics.anomaly import quantile_threshold
from sacm.tasks import get_task
from sacm.tasks.anomaly import normal_scores
from tests.estimators.cases import waves


def small(**parameters: Any) -> AnomalyDetector:
    defaults = {"size": "small", "epochs": 3, "input_len": 12, "learning_rate": 2e-3}
    return AnomalyDetector("iTransformer", **{**defaults, **parameters})


@pytest.fixture(scope="module")
def fitted() -> AnomalyDetector:
    return small().fit(waves(600))


def broken() -> tuple[np.ndarray, np.ndarray]:
    """Rows 100 to 109 do not belong."""
    values = waves(240)
    labels = np.zeros(240, dtype=int)
    values[100:110] += 6
    labels[100:110] = 1
    return values, labels


def test_finds_what_is_obvious(fitted: AnomalyDetector) -> None:
    values, labels = broken()
    scores = fitted.anomaly_scores(values)
    assert scores.shape == (240,)
    assert scores[labels == 1].min() > np.median(scores[labels == 0])
    assert fitted.alarms(values)[100:110].all()
    assert set(fitted.predict(values)) == {1, -1}
    assert fitted.evaluate(values, labels)["vus_pr"] > 0.8


def test_threshold_comes_from_the_last_fifth(fitted: AnomalyDetector) -> None:
    values = waves(600)
    test = values[:12].astype(np.float32)
    data = AnomalyData("data", values.astype(np.float32), test, np.zeros(12), ("0", "1"))
    task = get_task("anomaly")
    windows = task.windows(fitted.settings_, data)
    scores = normal_scores(fitted.predictor_.trained, windows, data)
    assert fitted.threshold_ == pytest.approx(quantile_threshold(scores, quantile=0.95))
    alarms = fitted.anomaly_scores(values[480:]) >= fitted.threshold_
    assert alarms.mean() == pytest.approx(0.05, abs=0.01)
    assert small(quantile=0.5, epochs=1).fit(values).alarms(values).mean() > 0.3


def test_rows_that_are_flagged_set_no_threshold() -> None:
    values = waves(600)
    values[500:560, 0] += np.random.default_rng(0).normal(0, 8, 60)  # in the last fifth
    found = small(epochs=1).fit(values)
    scores = found.anomaly_scores(values)
    flagged = (sacm.inspect(values).flags > 0).any(axis=1)
    assert flagged[500:560].mean() > 0.9
    assert found.threshold_ <= scores[480:][~flagged[480:]].max()
    assert found.threshold_ < np.quantile(scores[480:], 0.95)


def test_frames_keep_their_order(fitted: AnomalyDetector) -> None:
    values, labels = broken()
    stamps = pd.date_range("2024-01-01", periods=240, freq="min")
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(time=stamps, label=labels)
    detector = small(epochs=1).fit(frame)
    assert detector.n_features_in_ == 2  # the labels are none of them
    straight = detector.anomaly_scores(frame)
    shuffled = frame.sample(frac=1, random_state=0)
    with pytest.warns(SACMWarning, match="Rows .* by time"):
        found = detector.anomaly_scores(shuffled[["b", "time", "a"]])
    np.testing.assert_allclose(found, straight[shuffled.index], rtol=1e-6)
    with pytest.raises(DataError, match="no column 'b'"):
        detector.predict(frame[["time", "a"]])


def test_gaps_are_filled_and_said_so(fitted: AnomalyDetector) -> None:
    values, _ = broken()
    values[5, 1] = np.nan
    with pytest.warns(SACMWarning, match="1 missing values"):
        assert np.isfinite(fitted.anomaly_scores(values)).all()


def test_scores_that_are_not_finite_are_no_answer() -> None:
    values = waves(240)
    stamps = pd.date_range("2024-01-01", periods=240, freq="min")
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(time=stamps)
    detector = AnomalyDetector("TranAD", size="small", epochs=1, input_len=12).fit(frame)
    frame.loc[30, "a"] = 1e20
    with pytest.raises(SACMError, match=r"row 20 is not finite: .* the 12 rows"):
        detector.predict(frame)
    with (
        pytest.warns(SACMWarning, match="Rows .* by time"),
        pytest.raises(SACMError, match="score of row 221 is not finite"),
    ):
        detector.predict(frame[::-1])


def test_too_few_rows_are_refused(fitted: AnomalyDetector) -> None:
    with pytest.raises(
        DataError, match="no validation windows to choose by: use more data or shorter"
    ):
        small().fit(waves(50))
    with pytest.raises(DataError, match="has 11 rows, fewer than one window of 12"):
        fitted.predict(waves(11))


def test_a_wrong_kind_of_score_is_refused() -> None:
    with pytest.raises(ArgumentError, match="score = 'nativ'"):
        small(score_kind="nativ").fit(waves())


@pytest.mark.parametrize("quantile", [95, 0, "high"])
def test_a_wrong_quantile_is_refused_before_training(tmp_path: Path, quantile: Any) -> None:
    with pytest.raises(ArgumentError, match="quantile must be between 0 and 1, got"):
        small(quantile=quantile, folder=tmp_path).fit(waves())
    assert not list(tmp_path.iterdir())


def test_no_gap_in_training_is_filled_from_the_rows_that_validate() -> None:
    values = waves(600)
    values[479] = np.nan  # the last row before the last fifth
    other = values.copy()
    other[480:] += 100
    with pytest.warns(SACMWarning, match="interpolated"):
        one, two = (small(epochs=1).fit(rows) for rows in (values, other))
    assert one.scaler_.to_dict() == two.scaler_.to_dict()
