from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sacm import backbones
from sacm.backbones.wpmixer import Wavelet

from .cases import noise


@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(2, 120),
    level=st.integers(1, 3),
    name=st.sampled_from(["db2", "haar", "db4", "coif1"]),
)
def test_splitting_and_joining_gives_back_the_series(length: int, level: int, name: str) -> None:
    x, wavelet = noise(2, 3, length, seed=length), Wavelet(name, level)
    series = wavelet.split(x)
    torch.testing.assert_close(wavelet.join(series)[..., :length], x, atol=1e-5, rtol=1e-5)


def test_a_smooth_series_has_no_detail() -> None:
    _, detail = Wavelet("db2", 1).split(torch.arange(40.0)[None, None] + 3)
    assert detail[..., 1:-1].abs().max() < 1e-4  # db2 ignores lines; the ends see the zeros


@pytest.mark.parametrize("horizon", [1, 7, 24, 61])
def test_horizon_is_the_start_of_the_joined_series(horizon: int) -> None:
    model = backbones.build(
        "WPMixer", "forecasting", input_len=24, horizon=horizon, channels=2, size="small"
    ).eval()
    x = noise(3, 24, 2)
    with torch.no_grad():
        normal, statistics = model.revin.normalise(x)
        past = model.wavelet.split(normal.transpose(1, 2))
        future = [branch(each) for branch, each in zip(model.branches, past, strict=True)]
        joined = model.wavelet.join(future)[..., :horizon].transpose(1, 2)
        assert joined.shape == (3, horizon, 2)
        torch.testing.assert_close(model(x), model.revin.restore(joined, statistics))


@pytest.mark.parametrize("level", [0, 2])
def test_each_level_adds_a_branch_of_seven_dropouts(level: int) -> None:
    model = backbones.build(
        "WPMixer", "forecasting", input_len=96, horizon=24, channels=2, size="small", level=level
    )
    assert len(model.branches) == 1 + level
    assert model(noise(2, 96, 2)).shape == (2, 24, 2)
    for branch in model.branches:
        assert sum(isinstance(module, nn.Dropout) for module in branch.modules()) == 7
