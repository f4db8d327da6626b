from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss

from sacm import Classifier, DataError, SACMError, SACMWarning
from sacm.errors import ArgumentError
from tests.estimators.cases import labelled


def small(**parameters: Any) -> Classifier:
    defaults = {"size": "small", "epochs": 3, "learning_rate": 2e-3}
    return Classifier("iTransformer", **{**defaults, **parameters})


@pytest.fixture(scope="module")
def fitted() -> Classifier:
    return small().fit(*labelled(60))


def test_learns_what_is_easy(fitted: Classifier) -> None:
    X, y = labelled(80)
    assert fitted.score(X, y) > 0.9
    assert fitted.classes_.tolist() == ["fast", "slow"]


def test_probabilities_agree_with_labels_and_scikit_learn(fitted: Classifier) -> None:
    X, y = labelled(80)
    X = X + np.random.default_rng(1).normal(size=X.shape)  # so that some are wrong
    probabilities, predicted = fitted.predict_proba(X), fitted.predict(X)
    assert probabilities.shape == (80, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (predicted == fitted.classes_[probabilities.argmax(axis=1)]).all()
    found = fitted.evaluate(X, y)
    assert found["accuracy"] == accuracy_score(y, predicted)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    assert found["nll"] == pytest.approx(log_loss(y, probabilities))


@pytest.mark.parametrize("labels", [[10, 9], [True, False], [2.0, -1.0], ["b", "a"]])
def test_labels_come_back_as_they_were(labels: list[Any], tmp_path: Path) -> None:
    X, y = labelled()
    kinds = np.array(labels)
    own = kinds[(y == "slow").astype(int)]
    classifier = small(epochs=1).fit(X, own)
    assert classifier.classes_.tolist() == sorted(labels)
    assert classifier.predict(X).dtype == kinds.dtype
    classifier.save(tmp_path / "saved")
    loaded = Classifier.load(tmp_path / "saved")
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert (loaded.predict(X) == classifier.predict(X)).all()


def test_cases_of_different_length(fitted: Classifier) -> None:
    X, y = labelled()
    longer = [np.pad(case, ((0, 0), (0, 9)), mode="wrap") for case in X]
    np.testing.assert_allclose(fitted.predict_proba(longer), fitted.predict_proba(X), atol=1e-6)
    padded = X.copy()
    padded[:, :, 20:] = np.nan
    listed = [case[:, :20] for case in X]
    assert np.array_equal(fitted.predict_proba(padded), fitted.predict_proba(listed))
    ragged = [case[:, : 15 + i % 9] for i, case in enumerate(X)]
    assert small(epochs=1).fit(ragged, y).predict(ragged).shape == y.shape


def test_flat_cases_have_one_channel() -> None:
    X, y = labelled(channels=1)
    classifier = small(epochs=1).fit(X[:, 0], y)
    assert classifier.n_features_in_ == 1
    assert np.array_equal(classifier.predict_proba(X), classifier.predict_proba(X[:, 0]))


def test_gaps_are_filled_and_said_so() -> None:
    X, y = labelled()
    X[3, 1, 4:6] = np.nan
    with pytest.warns(SACMWarning, match="2 missing values in the train cases"):
        classifier = small(epochs=1).fit(X, y)
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_subjects_are_kept_together() -> None:
    X, y = labelled()
    subjects = np.arange(24) // 6
    assert small(epochs=1).fit(X, y, subjects=subjects).predict(X).shape == (24,)
    with pytest.raises(DataError, match="23 subjects for 24 cases"):
        small(epochs=1).fit(X, y, subjects=subjects[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:-1]), "24 training cases but labels"),
        (lambda X, y: (X, np.zeros(24)), r"all training cases have the label 0\.0"),
        (lambda X, y: (X, y[:, None]), r"24 training cases but labels \[24, 1\]"),
        (lambda X, y: (X, np.full(24, np.nan)), "name classes, all numbers or all text"),
        (lambda X, y: (X, np.array([1, "a"] * 12, dtype=object)), "all numbers or all text"),
        (lambda X, y: (5, y), "cases come as an array"),
        (lambda X, y: (np.full_like(X, np.inf), y), "infinite"),
        (lambda X, y: (X[..., None], y), r"must be \[C, L\]"),
        (lambda X, y: (X[:0], y[:0]), "same label|no training cases"),
    ],
)
def test_wrong_data_are_one_sentence(change: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        small().fit(*change(*labelled()))


def test_an_answer_that_is_not_finite_is_no_class(fitted: Classifier) -> None:
    X, y = labelled()
    X[3] = 1e38
    for ask in (fitted.predict, fitted.predict_proba, lambda X: fitted.evaluate(X, y)):
        with pytest.raises(SACMError, match="class of case 4 is undecided"):
            ask(X)


def test_labels_that_do_not_fit_the_cases(fitted: Classifier) -> None:
    X, y = labelled()
    with pytest.raises(DataError, match=r"24 new cases but labels \[23\]"):
        fitted.evaluate(X, y[:-1])
    with pytest.raises(ArgumentError, match=r"24 new cases but labels \[24, 1\]"):
        fitted.evaluate(X, y[:, None])
