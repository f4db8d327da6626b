"""Wrong labels: found where cases tell their classes, left alone where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm.errors import ArgumentError, DataError
from sacm.quality import labels
from sacm.quality.label_model import divide
from sacm.quality.labels import LabelQuality, find_wrong_labels
from sacm.tasks.baselines import ridge_baseline

CLASSES = np.array(["idle", "run", "walk"])


@pytest.fixture(scope="module", autouse=True)
def few_features() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "FEATURES", 1_000)
        patch.setattr(labels, "MANY_FEATURES", 504)
        yield


def waves(cases: int = 90, *, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cases `[N, 2, 40]` of three frequencies with phases of their own, and their labels."""
    random = np.random.default_rng(seed)
    codes = np.arange(cases) % 3
    grid = np.linspace(0, 2 * np.pi, 40)
    phase = random.uniform(0, 1.5, (cases, 2, 1))
    X = np.sin((1 + 2 * codes[:, None, None]) * grid + phase)
    return X + noise * random.normal(size=X.shape), CLASSES[codes]


def flip(labels: np.ndarray, share: float, *, kind: str = "symmetric", seed: int = 1) -> np.ndarray:
    """Labels of which a share is wrong."""
    random = np.random.default_rng(seed)
    codes = np.searchsorted(CLASSES, labels)
    chosen = random.random(len(codes)) < share
    other = (codes + random.integers(1, 3, len(codes))) % 3 if kind == "symmetric" else 0 * codes
    return CLASSES[np.where(chosen, other, codes)]


@pytest.fixture(scope="module")
def found() -> LabelQuality:
    X, y = waves()
    return find_wrong_labels(X, flip(y, 0.3))


def test_correct_labels_stay() -> None:
    X, y = waves()
    quality = find_wrong_labels(X, y)
    assert quality.trust
    assert not quality.flagged.any()
    assert quality.noise_rate < 0.02


def test_wrong_labels_are_found_and_named(found: LabelQuality) -> None:
    truth = waves()[1]
    wrong = found.given != truth
    assert (found.repaired == truth).mean() > 0.9
    assert (found.suggested == truth).mean() > 0.97
    assert not found.flagged[~wrong].any()
    assert (found.repaired[~found.flagged] == found.given[~found.flagged]).all()


def test_the_noise_rate_has_an_interval_around_the_truth(found: LabelQuality) -> None:
    low, high = found.noise_interval
    assert low <= (found.given != waves()[1]).mean() <= high
    assert low <= found.noise_rate <= high


def test_confidence_is_a_probability_and_orders_the_suspicious_cases(found: LabelQuality) -> None:
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    rows = found.suspicious
    assert (found.suggested[rows] != found.given[rows]).all()
    assert (np.diff(found.confidence[rows][found.flagged[rows]]) <= 0).all()


def test_one_sided_noise_is_found_though_it_changes_class_shares() -> None:
    X, y = waves(240)
    given = flip(y, 0.35, kind="one-sided")
    assert (find_wrong_labels(X, given).repaired == y).mean() > 0.9
    assert (given == y).mean() < 0.82


def test_few_wrong_labels_are_found() -> None:
    X, y = waves()
    given = y.copy()
    given[[4, 40, 77]] = np.roll(CLASSES, 1)[np.searchsorted(CLASSES, y[[4, 40, 77]])]
    quality = find_wrong_labels(X, given)
    assert np.flatnonzero(quality.flagged).tolist() == [4, 40, 77]


def test_a_class_is_repaired_of_which_half_the_labels_are_wrong() -> None:
    X, y = waves(36, noise=0.1)
    given = y.copy()
    for here, there, wrong in zip(CLASSES, np.roll(CLASSES, -1), (7, 4, 2), strict=True):
        given[np.flatnonzero(y == here)[:wrong]] = there
    assert (find_wrong_labels(X, given).repaired == y).mean() > 0.95


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_cases_that_do_not_tell_their_class_are_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    quality = find_wrong_labels(random.normal(size=(60, 2, 30)), np.repeat(["a", "b"], 30))
    assert not quality.trust
    assert not quality.flagged.any()
    assert "well enough" in quality.reason
    assert quality.reason in quality.summary()


def test_the_same_seed_gives_the_same_answer(found: LabelQuality) -> None:
    again = find_wrong_labels(waves()[0], found.given)
    np.testing.assert_array_equal(again.confidence, found.confidence)
    np.testing.assert_array_equal(again.flagged, found.flagged)


def test_checked_cases_are_kept(found: LabelQuality) -> None:
    case = int(np.flatnonzero(found.flagged)[0])
    again = sacm.inspect(waves()[0], y=found.given, keep=[case])
    assert not again.flagged[case]
    assert again.repaired[case] == found.given[case]
    assert (again.flagged.sum(), found.flagged.sum() - 1) == (found.flagged.sum() - 1,) * 2


def test_shorter_cases_end_in_nan() -> None:
    X, y = waves(150, noise=0.1)
    X[::2, :, 34:] = np.nan
    assert (find_wrong_labels(X, flip(y, 0.2)).repaired == y).mean() > 0.95


@pytest.mark.parametrize(
    "named", [np.arange(3), np.array([1.0, 2.0, 5.0]), np.array(["x", "y", 3], dtype=object)]
)
def test_labels_may_be_numbers_or_mixed(named: np.ndarray) -> None:
    X, y = waves()
    quality = find_wrong_labels(X, named[np.searchsorted(CLASSES, y)])
    assert quality.trust
    assert len(quality.classes) == 3
    assert not quality.flagged.any()


def test_groups_are_never_split() -> None:
    groups = np.repeat(np.arange(7), [5, 9, 3, 12, 4, 4, 13])
    parts = divide(np.zeros(50, int), groups, np.random.default_rng(0))
    assert all(len(np.unique(parts[groups == group])) == 1 for group in range(7))
    assert (np.bincount(parts) > 10).all()


def test_groups_are_used() -> None:
    X, y = waves()
    quality = find_wrong_labels(X, flip(y, 0.2), groups=np.arange(90) // 6)
    assert (quality.repaired == y).mean() > 0.95


def test_many_cases_are_judged_from_landmarks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = waves(900)
    monkeypatch.setattr(labels, "EXACT_CASES", 400)
    monkeypatch.setattr(labels, "LANDMARKS", 100)
    quality = find_wrong_labels(X, flip(y, 0.2))
    assert (quality.repaired == y).mean() > 0.97
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "labels: part 6 of 6\n" in shown.err


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.repeat("a", 30), "only one class, a"),
        (np.arange(30), "too few for 30 classes"),
        (np.repeat(np.arange(15), 2), "too few for 15 classes"),
    ],
)
def test_too_little_to_judge_is_an_answer(y: np.ndarray, reason: str) -> None:
    quality = find_wrong_labels(np.random.default_rng(0).normal(size=(30, 1, 20)), y)
    assert not quality.trust
    assert reason in quality.reason
    np.testing.assert_array_equal(quality.repaired, y)


@pytest.mark.parametrize("value", [1.0, np.nan, np.inf])
def test_constant_cases_are_refused(value: float) -> None:
    assert not find_wrong_labels(np.full((30, 1, 20), value), np.repeat(["a", "b"], 15)).trust


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 1, 9)), ["a", None, "b", "a"], "1 of 4 labels are missing .first: case 1"),
        (np.zeros((4, 1, 9)), [0.0, np.nan, 1.0, 1.0], "missing"),
        (np.zeros((4, 1, 9)), ["a", "b", "", "a"], "1 of 4 labels are missing .first: case 2"),
        (np.zeros((4, 1, 9)), np.array(["a", "b", pd.NA, ""], object), "2 of 4 labels are missing"),
        (np.zeros((4, 1, 9)), [0.5, 1.5, 0.5, 1.5], "fractions such as 0.5"),
        (np.zeros((4, 1, 9)), ["a", "b"], "4 cases in X but 2 labels"),
        (np.zeros((0, 1, 9)), [], r"got \[0, 1, 9\]"),
        (np.zeros(9), ["a"], r"got \[9\]"),
        (np.array([["a"]]), ["a"], "must hold numbers"),
        (np.zeros((4, 1, 9)), np.zeros((4, 2)), "one label a case"),
    ],
)
def test_wrong_input_is_said_in_a_sentence(X: np.ndarray, y: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_wrong_labels(X, y)


def test_groups_and_kept_cases_must_fit() -> None:
    X, y = waves(9)
    with pytest.raises(DataError, match="9 cases in X but 3 groups"):
        find_wrong_labels(X, y, groups=[1, 2, 3])
    with pytest.raises(DataError, match="9 cases in X but 2 names"):
        find_wrong_labels(X, y, names=["a", "b"])
    with pytest.raises(ArgumentError, match="keep= names case 9"):
        find_wrong_labels(X, y, keep=[9])


def test_summary_and_frame_list_the_cases(found: LabelQuality) -> None:
    text = found.summary()
    assert f"{found.flagged.sum()} of 90 labels are flagged" in text
    first = found.to_frame().iloc[0]
    assert list(first.index) == ["case", "given", "suggested", "confidence", "flagged", "keep"]
    assert first["flagged"]
    assert f"\n{first['case']} " in text


def test_cases_are_called_by_their_names(found: LabelQuality) -> None:
    names = [f"patient {i}" for i in range(90)]
    case = int(np.flatnonzero(found.flagged)[0])
    again = find_wrong_labels(waves()[0], found.given, names=names, keep=[names[case]])
    assert not again.flagged[case]
    assert set(again.to_frame()["case"]) <= set(names)


def test_the_page_draws_cases_beside_their_neighbours(found: LabelQuality, tmp_path: Path) -> None:
    found.report(tmp_path / "labels.html")
    page = (tmp_path / "labels.html").read_text()
    case = int(found.suspicious[0])
    assert f"Case {case}: given {found.given[case]}" in page
    assert page.count("<figure") == min(12, len(found.suspicious))
    assert "http" not in page


def test_the_baseline_knows_unseen_cases() -> None:
    X, y = waves(120)
    answers = ridge_baseline(X[:90], y[:90], X[90:])
    assert (answers == y[90:]).mean() > 0.95
