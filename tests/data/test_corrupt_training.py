"""Broken training parts: what is broken, what stays, and how it is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sacm.data import AnomalyData, corrupt_training, fingerprint, forecasting_data, synth12
from sacm.data.corrupt import parse_contamination
from sacm.errors import ArgumentError
from tests.training.cases import make_data

pytest.importorskip("sacm_lab", reason="most faults are the laboratory's")


def waves() -> np.ndarray:
    t = np.arange(9000)[:, None]
    return np.sin(t / [4.0, 7.0]) + 3


def test_training_and_validation_rows_are_broken_and_test_rows_are_not() -> None:
    data = forecasting_data(waves(), name="waves")
    worse = corrupt_training(data, "mix(0.3)", seed=1)
    assert worse.broken is not None
    for split, share in (("train", 0.3), ("val", 0.3), ("test", 0.0)):
        own = slice(worse.splits[split].start, worse.splits[split].stop)
        assert worse.broken[own].mean() == pytest.approx(share, abs=0.1)
    same = ~worse.broken
    np.testing.assert_array_equal(worse.values[same], data.values[same])
    assert fingerprint(data) != fingerprint(worse)


def test_clean_targets_of_test_rows_stay() -> None:
    data = synth12(0.3)
    worse = corrupt_training(data, "shift(0.2)", seed=1)
    test, train = (slice(rows.start, rows.stop) for rows in (data.splits.test, data.splits.train))
    np.testing.assert_array_equal(worse.clean[test], data.clean[test])
    np.testing.assert_array_equal(worse.clean[train], worse.values[train])


@pytest.mark.parametrize(("kind", "ratio"), [("symmetric", 0.5), ("asymmetric", 0.4)])
def test_a_share_of_the_labels_becomes_wrong(kind: str, ratio: float) -> None:
    data = make_data("classification")
    many = np.resize(data.y_train, 3000)
    data = replace(data, y_train=many)
    worse = corrupt_training(data, f"{kind}({ratio})", seed=3)
    wrong = worse.y_train != many
    assert wrong.mean() == pytest.approx(ratio, abs=0.03)
    assert worse.y_train.dtype == many.dtype
    step = (data.encode(worse.y_train) - data.encode(many))[wrong] % len(data.classes)
    assert set(step) == ({1} if kind == "asymmetric" else set(range(1, len(data.classes))))
    np.testing.assert_array_equal(worse.y_test, data.y_test)


def test_anomalies_cover_a_share_of_the_training_rows_in_half_of_the_channels_at_most() -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 6)).astype(np.float32)
    rows[:, 5] = 1.0  # never moves, so nothing can be said about its size
    data = AnomalyData("t", rows, rows[:200], np.zeros(200), tuple("abcdef"))
    worse = corrupt_training(data, "anomalies(0.1)", seed=2)
    changed = worse.train != rows
    assert changed.any(axis=1).mean() == pytest.approx(0.1, abs=0.03)
    assert changed.sum(axis=1).max() <= 3
    assert not changed[:, 5].any()
    np.testing.assert_array_equal(worse.test, data.test)


@pytest.mark.parametrize(
    ("text", "meaning"), [("mix", ("mix", 0.3)), ("Stuck( .1 )", ("stuck", 0.1))]
)
def test_one_spelling_for_one_meaning(text: str, meaning: tuple[str, float]) -> None:
    assert parse_contamination(text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rust(0.1)", "no fault 'rust'"),
        *((each, "share in") for each in ("mix(2)", "mix(0.1")),
    ],
)
def test_wrong_texts_get_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_contamination(text)


def test_no_text_leaves_the_data_as_they_are_and_a_fault_must_fit_the_task() -> None:
    data = make_data("classification")
    assert corrupt_training(data, "", seed=1) is data
    with pytest.raises(ArgumentError, match="does not corrupt labels"):
        corrupt_training(data, "mix(0.3)", seed=1)
