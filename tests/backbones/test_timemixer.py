from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm import backbones
from sacm.backbones.timemixer import MixingBlock, TimeMixerConfig, pyramid

from .cases import noise

LENGTHS = [16, 8, 4]


def silence(mlps: nn.ModuleList) -> None:
    for mlp in mlps:
        nn.init.zeros_(mlp.refine.weight)
        nn.init.zeros_(mlp.refine.bias)


def moved(block: MixingBlock, *, scale: int) -> list[bool]:
    """Which scales change when one of them does."""
    scales = [noise(2, length, 4, seed=length) for length in LENGTHS]
    changed = list(scales)
    changed[scale] = scales[scale] + noise(*scales[scale].shape, seed=99)
    with torch.no_grad():
        before, after = block(scales), block(changed)
    return [not torch.equal(one, other) for one, other in zip(before, after, strict=True)]


@pytest.fixture
def block() -> MixingBlock:
    return MixingBlock(TimeMixerConfig(width=4, hidden=8, moving_average=5), lengths=LENGTHS)


def test_seasons_move_only_from_fine_to_coarse(block: MixingBlock) -> None:
    silence(block.trends)
    assert moved(block, scale=1) == [False, True, True]


def test_trends_move_only_from_coarse_to_fine(block: MixingBlock) -> None:
    silence(block.seasons)
    assert moved(block, scale=1) == [True, True, False]


def test_without_mixing_every_scale_is_alone(block: MixingBlock) -> None:
    silence(block.seasons)
    silence(block.trends)
    assert moved(block, scale=0) == [True, False, False]


def test_pyramid_holds_means_of_pairs() -> None:
    x = torch.arange(7.0)[None, :, None]
    levels = [level.flatten().tolist() for level in pyramid(x, 3)]
    assert levels == [[0, 1, 2, 3, 4, 5, 6], [0.5, 2.5, 4.5], [1.5]]


def test_forecasts_of_the_scales_add_up() -> None:
    model = backbones.build(
        "TimeMixer", "forecasting", input_len=24, horizon=6, channels=2, size="small"
    ).eval()
    for forecast in model.forecasts:
        nn.init.zeros_(forecast.weight)
    nn.init.ones_(model.output.weight)
    nn.init.zeros_(model.output.bias)
    for count, forecast in enumerate(model.forecasts, start=1):
        nn.init.constant_(forecast.bias, float(count))
    x = noise(3, 24, 2)
    width = model.output.in_features
    _, (mean, std) = model.revins[0].normalise(x)
    expected = (1 + 2 + 3 + 4) * width * std + mean
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected.expand(3, 6, 2))
