from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from sacm.data import ForecastingData, Splits, WindowBatches, forecasting_data, forecasting_windows
from sacm.data.batches import window_starts
from sacm.data.datasets import Segment
from sacm.data.scaling import fill_data


def naive_forecasting(data: ForecastingData, split: str, length: int, horizon: int):
    """Windows slice by slice: every start inside the split and inside one segment."""
    rows = data.splits[split]
    train = data.splits.train
    fit = data.values[train.start : train.stop].astype(np.float64)
    std = fit.std(axis=0)
    mean, std = fit.mean(axis=0), np.where(std > 1e-9, std, 1)
    found = []
    for start in rows:
        stop = start + length + horizon
        inside = any(s.start <= start and stop <= s.stop for s in data.segments)
        if stop <= rows.stop and inside:
            found.append(((data.values[start:stop] - mean) / std, start))
    return found


@st.composite
def series(draw) -> ForecastingData:
    rows = draw(st.integers(30, 120))
    channels = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 1000))
    values = np.random.default_rng(seed).standard_normal((rows, channels)).astype(np.float32)
    cuts = sorted(draw(st.lists(st.integers(1, rows - 1), max_size=3, unique=True)))
    borders = [0, *cuts, rows]
    segments = tuple(
        Segment(str(i), start, stop) for i, (start, stop) in enumerate(pairwise(borders))
    )
    first, second = sorted((draw(st.integers(15, rows)), draw(st.integers(15, rows))))
    splits = Splits(range(first), range(first, second), range(second, rows))
    names = tuple(str(c) for c in range(channels))
    return ForecastingData("random", values, names, splits, segments=segments)


@settings(max_examples=60, deadline=None)
@given(data=series(), length=st.integers(1, 6), horizon=st.integers(1, 6), batch=st.integers(1, 9))
def test_windows_equal_slices(data, length, horizon, batch):
    naive = {s: naive_forecasting(data, s, length, horizon) for s in ("train", "val", "test")}
    if any(len(data.splits[s]) and not naive[s] for s in naive) or not len(data.splits.train):
        return
    windows = forecasting_windows(data, input_len=length, horizon=horizon)
    for split, expected in naive.items():
        part = getattr(windows, split)
        assert len(part) == len(expected)
        batches = list(WindowBatches(part, batch))
        x = [row for b in batches for row in torch.cat([b.x, b.y], dim=1)]
        positions = [int(p) for b in batches for p in b.positions]
        assert positions == [start for _, start in expected]
        for found, (window, _) in zip(x, expected, strict=True):
            np.testing.assert_allclose(found.numpy(), window, rtol=1e-3, atol=1e-4)


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    size=st.integers(1, 12),
    stride=st.integers(1, 5),
)
def test_starts_stay_inside_their_range(lengths, size, stride):
    ends = np.cumsum(lengths)
    ranges = [range(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    starts = window_starts(ranges, size, stride=stride)
    expected = [s for r in ranges for s in range(r.start, r.stop - size + 1, stride)]
    assert starts.tolist() == expected
    for rows in ranges:
        covering = window_starts([rows], size, stride=stride, cover=True)
        seen = {start + step for start in covering for step in range(size)}
        if len(rows) >= size and stride <= size:
            assert seen == set(rows)


@pytest.fixture
def data() -> ForecastingData:
    values = np.random.default_rng(0).standard_normal((400, 3)).astype(np.float32)
    return forecasting_data(values)


def test_pickled_windows_are_as_small_as_their_series(data):
    windows = forecasting_windows(data, input_len=9, horizon=4)
    packed = pickle.dumps(windows)
    assert len(packed) < 3 * data.values.nbytes
    again = pickle.loads(packed)
    torch.testing.assert_close(again.test.batch([2]).x, windows.test.batch([2]).x)
    assert again.train.inputs is again.test.inputs


def test_a_batch_is_a_copy(data):
    windows = forecasting_windows(data, input_len=9, horizon=4).train
    before = windows.batch([3]).x.clone()
    windows.batch([3]).x.add_(1)
    torch.testing.assert_close(windows.batch([3]).x, before)
    assert windows.batch([3, 5]).x.is_contiguous()


@pytest.mark.parametrize("workers", [0, 1])
def test_torch_data_loader_reads_whole_batches(data, workers):
    windows = forecasting_windows(data, input_len=9, horizon=4).test
    loader = DataLoader(
        windows,
        batch_size=None,
        sampler=BatchSampler(SequentialSampler(windows), 8, drop_last=False),
        num_workers=workers,
        multiprocessing_context="spawn" if workers else None,
    )
    for ours, theirs in zip(WindowBatches(windows, 8), loader, strict=True):
        torch.testing.assert_close(ours.x, theirs.x)
        torch.testing.assert_close(ours.y, theirs.y)
        assert theirs.stamps is None


def test_stamps_and_observed_come_with_the_windows():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "date": pd.date_range("2021-01-01", periods=200, freq="h"),
            "a": np.arange(200.0),
        }
    )
    frame.loc[150, "a"] = np.nan
    data, _ = fill_data(forecasting_data(frame))
    windows = forecasting_windows(data, input_len=6, horizon=3, stamps=True)
    batch = windows.test.batch(np.arange(len(windows.test)))
    assert batch.stamps.shape == (len(windows.test), 9, 4)
    assert batch.observed.all()
    batch = windows.val.batch(np.arange(len(windows.val)))
    hidden = (batch.positions[:, None] + 6 + torch.arange(3)) == 150
    torch.testing.assert_close(~batch.observed[:, :, 0], hidden)
