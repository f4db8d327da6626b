"""Strategy `labels`: training and validation labels are repaired, test labels never seen."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sacm import Classifier
from sacm.data.datasets import ClassificationData
from sacm.errors import ArgumentError
from sacm.strategies import parse
from sacm.strategies.base import Prepared

WRONG = [3, 10, 25, 38, 51, 60, 77, 94, 101, 112]


def waves(cases: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Slow and fast waves `[N, 1, 40]` and their names."""
    random = np.random.default_rng(seed)
    fast = np.arange(cases) % 2
    grid = np.linspace(0, 2 * np.pi, 40)
    phase = random.uniform(0, 1, (cases, 1, 1))
    X = np.sin((1 + 3 * fast[:, None, None]) * grid + phase)
    X += 0.1 * random.normal(size=X.shape)
    return X.astype(np.float32), np.array(["slow", "fast"])[fast]


def noisy_data() -> ClassificationData:
    """Training cases with ten wrong labels; the test labels are nonsense."""
    X, y = waves()
    y[WRONG] = np.where(y[WRONG] == "slow", "fast", "slow")
    lengths = np.full(120, 40)
    nonsense = np.repeat(["slow", "fast"], 60)
    return ClassificationData("waves", X, y, X, nonsense, lengths, lengths, ("fast", "slow"))


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return parse("labels").prepare(noisy_data(), window=40)


def test_wrong_labels_are_replaced_and_said(prepared: Prepared) -> None:
    replaced = np.flatnonzero(prepared.data.y_train != noisy_data().y_train)
    assert set(replaced) <= set(WRONG)
    assert len(replaced) >= 8
    np.testing.assert_array_equal(prepared.data.y_test, noisy_data().y_test)
    assert f"look wrong: {len(replaced)} of 120 were replaced." in prepared.notes[0]


def test_what_has_been_repaired_is_not_repaired_again(prepared: Prepared, tmp_path: object) -> None:
    noisy = noisy_data()
    assert prepared.strategy.prepare(noisy, window=40).data is noisy
    assert parse("labels").load(tmp_path).prepare(noisy, window=40).data is noisy  # type: ignore[arg-type]


def test_wrong_labels_may_be_left_out(prepared: Prepared) -> None:
    noisy = noisy_data()
    changed = parse("labels(use=drop)").prepare(noisy, window=40).data
    kept = prepared.data.y_train == noisy.y_train
    np.testing.assert_array_equal(changed.X_train, noisy.X_train[kept])
    np.testing.assert_array_equal(changed.y_train, noisy.y_train[kept])
    assert len(changed.lengths_train) == len(changed.y_train) < 120
    assert changed.classes == ("fast", "slow")


def test_replaced_labels_may_count_by_their_confidence() -> None:
    fitted = parse("labels(use=soft)").prepare(noisy_data(), window=40).strategy
    run = fitted.begin(torch.nn.Linear(1, 1), None)  # type: ignore[arg-type]
    batch = SimpleNamespace(positions=torch.tensor([0, WRONG[0], 1]))
    weights = run.weights(batch, torch.zeros(3, 2))
    assert weights is not None
    assert weights[0] == weights[2] == 1
    assert 0.5 <= float(weights[1]) < 1


def test_labels_that_cannot_be_judged_stay() -> None:
    random, noisy = np.random.default_rng(0), noisy_data()
    noise = random.normal(size=noisy.X_train.shape).astype(np.float32)
    prepared = parse("labels").prepare(replace(noisy, X_train=noise, X_test=noise), window=40)
    np.testing.assert_array_equal(prepared.data.y_train, noisy.y_train)
    assert "stay as they are" in prepared.notes[0]


def test_very_few_suspicious_labels_stay() -> None:
    X, y = waves()
    y[3] = "slow"
    lengths = np.full(120, 40)
    data = ClassificationData("waves", X, y, X, y, lengths, lengths, ("fast", "slow"))
    prepared = parse("labels").prepare(data, window=40)
    assert prepared.data is data
    assert "1 of 120 look wrong, fewer than 2%" in prepared.notes[0]


def test_it_is_for_classification_and_knows_three_uses() -> None:
    with pytest.raises(ArgumentError, match="labels is for classification"):
        parse("labels").check_task("forecasting")
    with pytest.raises(ArgumentError, match="relabel, drop, soft"):
        parse("labels(use=guess)")


@pytest.mark.parametrize("strategy", ["labels", "labels(use=soft)+sacm"])
def test_a_classifier_learns_the_repaired_labels(strategy: str) -> None:
    noisy = noisy_data()
    X, y = waves(40, seed=5)
    classifier = Classifier("MiniROCKET", strategy=strategy, size="small", epochs=5)
    assert classifier.fit(noisy.X_train, noisy.y_train).score(X, y) > 0.9
