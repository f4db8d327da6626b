"""Intervals of labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from sacm.errors import ArgumentError, DataError
from sacm.metrics.intervals import (
    find_intervals,
    read_labels,
    read_scores,
    segment_borders,
)

from .cases import labelled, runs


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_intervals_equal_a_point_by_point_search(case):
    predictions, labels, segments = case
    borders = segment_borders(segments, length=len(labels))
    found = find_intervals(labels.astype(bool), borders)
    assert list(zip(found.starts, found.stops, strict=True)) == runs(labels, segments)
    assert found.reduce(np.add, predictions, empty=0).tolist() == [
        predictions[start:stop].sum() for start, stop in runs(labels, segments)
    ]


def test_a_border_cuts_an_interval_in_two():
    borders = segment_borders(["a", "a", "b", "b"], length=4)
    assert borders.tolist() == [0, 2, 4]
    cut = find_intervals(np.array([False, True, True, False]), borders)
    assert (cut.starts.tolist(), cut.stops.tolist()) == ([1, 2], [2, 3])


def test_bad_input_is_named():
    with pytest.raises(DataError, match="found 2 at position 1"):
        read_labels([0, 2, 1])
    with pytest.raises(DataError, match="found nan at position 2"):
        read_scores([0.0, 1.0, np.nan])
    with pytest.raises(ArgumentError, match="1-D"):
        read_scores(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="non-empty"):
        read_labels([])
    with pytest.raises(ArgumentError, match="scores has 2, labels has 3"):
        read_scores(np.zeros(2), length=3)
    with pytest.raises(DataError, match="comes back"):
        segment_borders([0, 1, 0], length=3)
    with pytest.raises(ArgumentError, match="each of the 3 points"):
        segment_borders([0, 1], length=3)
