"""scikit-learn's own checks and conventions."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

from sacm import AnomalyDetector, Classifier
from sacm.errors import ArgumentError
from tests.estimators.cases import labelled, waves

# What our classifier does otherwise, and why.
OTHERWISE = {
    "check_classifiers_train": "new cases may be shorter or longer: they are padded or cut",
    "check_n_features_in": "n_features_in_ is the number of channels, not of steps",
    "check_n_features_in_after_fitting": "likewise, and new cases may have other lengths",
    "check_supervised_y_2d": "a column of labels [N, 1] is refused, not flattened",
    "check_dtype_object": "an object that is no number is a DataError, which is a ValueError",
}


@pytest.mark.slow
def test_the_classifier_passes_every_check_but_those_that_are_named() -> None:
    small = {"width": 8, "hidden": 8}
    classifier = Classifier("iTransformer", size="small", epochs=1, overrides=small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            classifier, expected_failed_checks=OTHERWISE, on_fail=None, on_skip=None
        )
    failed = {
        each["check_name"]: each["exception"] for each in results if each["status"] == "failed"
    }
    assert failed == {}
    known = {each["check_name"] for each in results if each["status"] == "xfail"}
    assert known == set(OTHERWISE), "a check that passes should leave the list"


@pytest.fixture(scope="module")
def detector() -> AnomalyDetector:
    small = {"width": 8, "hidden": 8}
    return AnomalyDetector("iTransformer", input_len=12, size="small", epochs=1, overrides=small)


def test_the_detector_has_the_signs_of_scikit_learn(detector: AnomalyDetector) -> None:
    rows = waves()
    rows[100] += 20
    signs = detector.fit_predict(rows)
    scores = detector.anomaly_scores(rows)
    np.testing.assert_allclose(detector.decision_function(rows), detector.threshold_ - scores)
    np.testing.assert_array_equal(signs, detector.fit(rows).predict(rows))
    np.testing.assert_array_equal(signs == -1, detector.alarms(rows))
    np.testing.assert_array_equal(signs == -1, detector.decision_function(rows) <= 0)
    assert signs[100] == -1


def test_a_frame_holds_a_case_of_one_channel_a_row() -> None:
    X, y = labelled(channels=1)
    small = {"width": 8, "hidden": 8}
    classifier = Classifier("iTransformer", size="small", epochs=1, overrides=small)
    classifier.fit(pd.DataFrame(X[:, 0]), y)
    assert classifier.n_features_in_ == 1
    labels = classifier.predict(pd.DataFrame(X[:, 0]))
    np.testing.assert_array_equal(labels, classifier.predict(X[:, 0]))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((4, 3)) * 1j, "Complex data not supported"),
        (np.ones((4, 0)), "0 feature"),
        (np.ones(4), "Reshape your data"),
    ],
)
def test_what_cannot_be_cases_is_one_sentence(X: np.ndarray, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Classifier().fit(X, ["a", "b", "a", "b"])
    with pytest.raises(ArgumentError, match="requires y to be passed"):
        Classifier().fit(np.ones((4, 3)), None)
    with pytest.raises(ArgumentError, match="Unknown label type: continuous"):
        Classifier().fit(np.ones((4, 3)), [0.5, 1.0, 2.0, 0.1])
