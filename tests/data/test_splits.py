from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm.data.datasets import segment_ranges, split_by_ratio, split_cases
from sacm.errors import ArgumentError, DataError


@given(
    rows=st.integers(0, 5000),
    cuts=st.tuples(st.integers(1, 10), st.integers(0, 10), st.integers(0, 10)),
)
def test_splits_cover_every_row_once(rows, cuts):
    total = sum(cuts)
    splits = split_by_ratio(rows, tuple(cut / total for cut in cuts))
    assert [row for part in splits for row in part] == list(range(rows))


def test_names_and_positions():
    splits = split_by_ratio(100)
    assert splits["val"] == splits.val == range(70, 80)
    train, val, test = splits
    assert (len(train), len(val), len(test)) == (70, 10, 20)


def test_without_a_test_share_the_rest_validates():
    assert [len(part) for part in split_by_ratio(11, (0.8, 0.2, 0.0))] == [8, 3, 0]


@pytest.mark.parametrize(
    "ratios", [(0.5, 0.2, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (0.5, 0.5)]
)
def test_bad_ratios(ratios):
    with pytest.raises(ArgumentError, match="three shares"):
        split_by_ratio(10, ratios)


def test_segments_are_cut_at_the_split():
    segments = [range(10), range(10, 15), range(15, 30)]
    assert segment_ranges(segments, range(4, 20)) == (range(4, 10), range(10, 15), range(15, 20))
    assert segment_ranges(segments, range(10, 15)) == (range(10, 15),)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=80))
def test_stratified_takes_a_share_of_every_class(labels):
    labels = np.array(labels)
    train, val = split_cases(labels)
    assert sorted([*train, *val]) == list(range(len(labels)))
    for label in np.unique(labels):
        count, held = (labels == label).sum(), (labels[val] == label).sum()
        assert held == (0 if count == 1 else min(max(1, round(0.2 * count)), count - 1))


def test_stratified_is_the_same_every_time():
    labels = np.repeat(["a", "b"], 50)
    np.testing.assert_array_equal(split_cases(labels)[1], split_cases(labels)[1])


def test_subjects_are_never_shared():
    subjects = np.repeat(np.arange(21), 7)
    train, val = split_cases(subjects, subjects)
    assert not set(subjects[train]) & set(subjects[val])
    assert len(set(subjects[val])) == 4
    with pytest.raises(DataError, match="two subjects"):
        split_cases(np.arange(5), np.zeros(5))
