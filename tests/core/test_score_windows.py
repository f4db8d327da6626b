from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from sacm import SACMConfig, SpectralScorer, score_windows
from sacm.core import scorer as module


def series(rows: int = 200, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, channels)).cumsum(axis=0)


@pytest.mark.parametrize(("window", "stride"), [(96, 1), (32, 5), (200, 1), (1, 1), (7, 300)])
def test_each_score_is_that_of_the_window_cut_out_by_hand(window: int, stride: int) -> None:
    values = series()
    scores = score_windows(values, window=window, stride=stride)
    starts = range(0, len(values) - window + 1, stride)
    assert scores.shape == (len(starts),)
    scorer = SpectralScorer(3).double()
    for score, start in zip(scores, starts, strict=True):
        cut = torch.from_numpy(values[start : start + window]).unsqueeze(0)
        with torch.no_grad():
            assert score == pytest.approx(scorer(cut).scores.item(), rel=1e-6, abs=1e-12)


def test_numpy_in_numpy_out_and_tensor_in_tensor_out() -> None:
    values = series()
    from_numpy, from_tensor = score_windows(values), score_windows(torch.from_numpy(values))
    assert isinstance(from_numpy, np.ndarray)
    assert isinstance(from_tensor, torch.Tensor)
    np.testing.assert_array_equal(from_numpy, from_tensor.numpy())


def test_a_vector_is_one_channel() -> None:
    values = series(channels=1)
    np.testing.assert_array_equal(score_windows(values[:, 0]), score_windows(values))


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score_windows(series())
    monkeypatch.setattr(module, "_CHUNK", 1000)
    np.testing.assert_allclose(score_windows(series()), whole, rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.astype(">f8"),
        lambda v: v[::-1][::-1],
        lambda v: np.asfortranarray(v),
        lambda v: v.tolist(),
        lambda v: _read_only(v),
    ],
    ids=["big-endian", "negative strides", "Fortran order", "list", "read-only"],
)
def test_the_same_numbers_in_another_dress(change: object) -> None:
    values = series()
    np.testing.assert_array_equal(score_windows(change(values)), score_windows(values))


def _read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint8, np.bool_, np.float16])
def test_whole_and_short_numbers_are_scored_in_float32(dtype: type) -> None:
    values = np.random.default_rng(1).integers(0, 2, size=(120, 2)).astype(dtype)
    scores = score_windows(values, window=24)
    np.testing.assert_array_equal(scores, score_windows(values.astype(np.float32), window=24))


def test_noisier_stretches_score_higher() -> None:
    time = np.arange(600)
    noise = np.random.default_rng(2).normal(size=600) * (time >= 300)
    scores = score_windows(np.sin(time / 4) + noise, window=96)
    assert scores[310:].min() > scores[:200].max()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_value_is_named_by_row_channel_and_window(value: float) -> None:
    values = series()
    values[150, 2] = value
    with pytest.raises(ValueError, match=re.escape(f"row 150, channel 2 is {value}")) as caught:
        score_windows(values, window=96, stride=10)
    assert "first in window 6" in str(caught.value)  # rows 60 to 155


def test_settings_are_used() -> None:
    config = SACMConfig(detrend="none")
    assert not np.allclose(score_windows(series()), score_windows(series(), config=config))
