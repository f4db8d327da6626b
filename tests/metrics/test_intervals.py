from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from sacm.errors import ArgumentError, DataError
from sacm.metrics.intervals import (
    as_flags,
    as_scores,
    check_lengths,
    degenerate,
    find_intervals,
    segment_borders,
)

from .cases import labelled, runs


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_intervals_equal_a_point_by_point_search(case):
    predictions, labels, segments = case
    borders = segment_borders(segments, length=len(labels))
    found = find_intervals(labels.astype(bool), borders=borders)
    assert list(zip(found.starts, found.stops, strict=True)) == runs(labels, segments)
    assert found.count(predictions.astype(bool)).tolist() == [
        predictions[start:stop].sum() for start, stop in runs(labels, segments)
    ]


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_overlapping_names_exactly_the_runs_that_share_a_point(case):
    predictions, labels, segments = case
    borders = segment_borders(segments, length=len(labels))
    own = find_intervals(labels.astype(bool), borders=borders)
    other = find_intervals(predictions.astype(bool), borders=borders)
    first, last = own.overlapping(other)
    for index, (start, stop) in enumerate(runs(labels, segments)):
        expected = [
            number
            for number, (a, b) in enumerate(runs(predictions, segments))
            if max(a, start) < min(b, stop)
        ]
        assert list(range(first[index], last[index])) == expected


def test_a_border_cuts_an_interval_in_two():
    borders = segment_borders(["a", "a", "b", "b"], length=4)
    assert borders.tolist() == [0, 2, 4]
    cut = find_intervals(np.array([False, True, True, False]), borders=borders)
    assert (cut.starts.tolist(), cut.stops.tolist()) == ([1, 2], [2, 3])


def test_bad_input_is_named():
    with pytest.raises(DataError, match="found 2 at position 1"):
        as_flags([0, 2, 1], name="labels")
    with pytest.raises(DataError, match="found nan at position 2"):
        as_scores([0.0, 1.0, np.nan])
    with pytest.raises(ArgumentError, match="1-D"):
        as_scores(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="non-empty"):
        as_flags([], name="labels")
    with pytest.raises(ArgumentError, match="scores has 2, labels has 3"):
        check_lengths(scores=np.zeros(2), labels=np.zeros(3))
    with pytest.raises(DataError, match="comes back"):
        segment_borders([0, 1, 0], length=3)
    with pytest.raises(ArgumentError, match="each of the 3 points"):
        segment_borders([0, 1], length=3)


def test_degenerate_labels_have_a_reason():
    assert "no point" in str(degenerate(np.zeros(3, dtype=bool)))
    assert "every point" in str(degenerate(np.ones(3, dtype=bool)))
    assert degenerate(np.array([False, True])) is None
