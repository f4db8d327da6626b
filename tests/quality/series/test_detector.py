"""The detector finds faults where they are, looks nowhere it must not, and can be stored."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sacm.errors import ArgumentError, DataError
from sacm.quality.kinds import KINDS
from sacm.quality.series import SeriesDetector
from tests.quality.series.faulty import break_channel, healthy

FOUND = ("missing", "code", "stuck", "spike", "burst", "shift")


@pytest.mark.parametrize("kind", FOUND)
def test_a_fault_is_found_by_its_name_and_place(kind: str) -> None:
    values, rows = break_channel(healthy(), kind)
    flags = SeriesDetector().fit(values).detect(values)
    named = flags[rows, 0] == KINDS.index(kind)
    assert named.mean() >= 0.9
    assert np.mean(np.delete(flags[:, 0], np.r_[rows]) > 0) < 0.005


def test_a_value_far_outside_the_training_range_is_out_of_range() -> None:
    detector = SeriesDetector().fit(healthy())
    values, rows = break_channel(healthy(seed=3), "range")
    for causal in (False, True):
        flags = detector.detect(values, causal=causal)
        assert KINDS[flags[rows, 0][0]] == "range"


def test_a_sensor_that_is_cut_off_is_clipped() -> None:
    values = healthy()
    limit = np.quantile(values[:, 0], 0.9)
    clipped = values.copy()
    clipped[:, 0] = np.minimum(values[:, 0], limit)
    flags = SeriesDetector().fit(clipped).detect(clipped)
    assert np.all(flags[values[:, 0] > limit, 0] == KINDS.index("clipped"))


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_faults_in_many_rows_do_not_hide_one_another(share: float) -> None:
    generator = np.random.default_rng(5)
    values = healthy(6000)
    broken, truth = values.copy(), np.zeros(values.shape, bool)
    while truth[:, 0].mean() < share:
        first, length = generator.integers(1, 5900), generator.integers(24, 96)
        rows = slice(first, first + length)
        kind = generator.integers(3)
        if kind == 0:
            broken[rows, 0] = broken[first, 0]
        elif kind == 1:
            broken[rows, 0] = values[rows, 0] + 1.5 * generator.standard_normal(length)
        else:
            broken[rows, 0] = np.nan
        truth[rows, 0] = True
    flags = SeriesDetector().fit(broken).detect(broken)[:, 0] > 0
    assert np.mean(flags[truth[:, 0]]) > 0.85
    assert np.mean(truth[flags, 0]) > 0.9


@settings(max_examples=15, deadline=None)
@given(cut=st.integers(30, 1199), seed=st.integers(0, 100))
def test_causal_flags_do_not_depend_on_later_rows(cut: int, seed: int) -> None:
    detector = _fitted()
    values = break_channel(healthy(1200 + 100, seed), "burst")[0][:1200]
    whole = detector.detect(values, start=7, causal=True)
    changed = values.copy()
    changed[cut:] = np.random.default_rng(seed).normal(0, 50, (1200 - cut, 3))
    np.testing.assert_array_equal(detector.detect(changed, start=7, causal=True)[:cut], whole[:cut])
    np.testing.assert_array_equal(detector.detect(values[:cut], start=7, causal=True), whole[:cut])


def test_pieces_are_judged_as_if_alone() -> None:
    detector = _fitted()
    first, second = healthy(900, 1), healthy(700, 2) + 100.0
    pieces = [range(900), range(900, 1600)]
    for causal in (False, True):
        together = detector.detect(np.concatenate([first, second]), pieces, causal=causal)
        alone = [detector.detect(one, causal=causal) for one in (first, second)]
        np.testing.assert_array_equal(together, np.concatenate(alone))


def test_fitting_on_pieces_does_not_look_across_borders() -> None:
    parts = [healthy(1000, seed) + 30 * seed for seed in range(3)]
    pieces = [range(1000), range(1000, 2000), range(2000, 3000)]
    values = np.concatenate(parts)
    flags = SeriesDetector().fit(values, pieces, start=[0, 0, 0]).detect(values, pieces)
    assert np.mean(flags > 0) < 0.01


def test_the_stored_detector_gives_the_same_flags() -> None:
    values = break_channel(healthy(), "spike")[0]
    detector = SeriesDetector(1.3).fit(values)
    text = json.dumps(detector.to_dict(), allow_nan=False)
    again = SeriesDetector.from_dict(json.loads(text))
    for causal in (False, True):
        np.testing.assert_array_equal(
            again.detect(values, causal=causal), detector.detect(values, causal=causal)
        )
    assert again.to_dict() == detector.to_dict()


def test_more_sensitivity_flags_more() -> None:
    values = np.random.default_rng(0).standard_t(4, (4000, 1))
    shares = [
        np.mean(SeriesDetector(sensitivity).fit(values).detect(values) > 0)
        for sensitivity in (0.5, 1.0, 2.0)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_what_cannot_be_judged_is_left_alone_and_named() -> None:
    values = np.full((200, 4), np.nan)
    values[:, 0] = 3.0
    values[:50, 2] = np.arange(50)
    values[:, 3] = np.random.default_rng(0).standard_normal(200)
    detector = SeriesDetector().fit(values)
    assert detector.unjudged == {
        0: "constant",
        1: "no usable value",
        2: "only 50 usable values; at least 100 are needed",
    }
    flags = detector.detect(values)
    assert not flags[:, 0].any()
    assert np.all(flags[:, 1] == KINDS.index("missing"))
    assert np.all(flags[50:, 2] == KINDS.index("missing"))
    assert not flags[:50, 2].any()


def test_gap_codes_of_a_constant_channel_are_found() -> None:
    values = healthy(500)
    values[:, 2] = 4.0
    values[100:110, 2] = -9999.0
    detector = SeriesDetector().fit(values)
    assert detector.unjudged == {2: "constant but for its gap codes"}
    flags = detector.detect(values)[:, 2]
    assert list(np.flatnonzero(flags == KINDS.index("code"))) == list(range(100, 110))
    assert (flags > 0).sum() == 10


def test_progress_is_told_by_channel() -> None:
    values, fitted, judged = healthy(300), [], []
    detector = SeriesDetector().fit(values, progress=fitted.append)
    detector.detect(values, [range(100), range(100, 300)], progress=judged.append)
    assert fitted == [0, 1 / 3, 2 / 3]
    assert judged == pytest.approx([1 / 9, 2 / 9, 1 / 3, 5 / 9, 7 / 9, 1])


def test_a_detector_of_an_older_version_can_be_read() -> None:
    state = _fitted().to_dict()
    for channel in state["channels"]:
        del channel["local"]["far"], channel["gross"]["runs"]["near"]
    assert SeriesDetector.from_dict(state).detect(healthy(200)).shape == (200, 3)


def test_infinite_values_are_missing() -> None:
    values = healthy(500)
    values[100, 1], values[101, 1] = np.inf, -np.inf
    flags = SeriesDetector().fit(values).detect(values)
    assert np.all(flags[100:102, 1] == KINDS.index("missing"))


def test_an_event_that_related_channels_share_is_no_fault() -> None:
    values = healthy(3000)
    values[:, 1] = 2 * values[:, 0] + 0.02 * np.random.default_rng(0).standard_normal(3000)
    one_sided = values.copy()
    one_sided[1500, 0] += 3.0
    shared = one_sided.copy()
    shared[1500, 1] += 6.0
    assert SeriesDetector().fit(one_sided).detect(one_sided)[1500, 0] == KINDS.index("spike")
    assert SeriesDetector().fit(shared).detect(shared)[1500, 0] == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(5), "table"),
        (np.zeros((0, 3)), "table"),
        ([["a"]], "numbers"),
    ],
)
def test_wrong_tables_are_refused_in_a_sentence(values: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        SeriesDetector().fit(values)


def test_wrong_arguments_are_refused_in_a_sentence() -> None:
    values = healthy(300)
    with pytest.raises(ArgumentError, match="sensitivity"):
        SeriesDetector(0)
    with pytest.raises(ArgumentError, match="not fitted"):
        SeriesDetector().detect(values)
    detector = SeriesDetector().fit(values)
    with pytest.raises(ArgumentError, match="2 channels"):
        detector.detect(values[:, :2])
    with pytest.raises(ArgumentError, match="without gaps"):
        detector.detect(values, [range(100), range(150, 300)])
    with pytest.raises(ArgumentError, match="end at row"):
        detector.detect(values, [range(100)])
    with pytest.raises(ArgumentError, match="start rows"):
        detector.detect(values, start=[1, 2])


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 23, 24, 25, 60])
def test_pieces_of_any_length_can_be_judged(rows: int) -> None:
    detector = _fitted()
    for causal in (False, True):
        assert detector.detect(healthy(rows), causal=causal).shape == (rows, 3)
    SeriesDetector().fit(healthy(rows))


_CACHE: list[SeriesDetector] = []


def _fitted() -> SeriesDetector:
    if not _CACHE:
        _CACHE.append(SeriesDetector().fit(healthy()))
    return _CACHE[0]
