"""TimeMixer against neuralforecast's with independent channels, the whole network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm import backbones
from sacm.backbones.blocks.normalisation import RevIN
from sacm.backbones.timemixer import MixingBlock, TimeMLP

from .carry import assert_equal_outputs, carry, scramble, windows

models = pytest.importorskip(
    "neuralforecast.models.timemixer", reason="compares with neuralforecast"
)


@torch.no_grad()
def carry_revin(source: nn.Module, target: RevIN) -> None:
    target.weight.copy_(source.affine_weight)
    target.bias.copy_(source.affine_bias)


def carry_time_mlp(source: nn.Sequential, target: TimeMLP) -> None:
    carry(source[0], target.resample)
    carry(source[2], target.refine)


def carry_block(source: nn.Module, target: MixingBlock) -> None:
    season = source.mixing_multi_scale_season.down_sampling_layers
    trend = reversed(source.mixing_multi_scale_trend.up_sampling_layers)  # coarsest first
    for one, other in zip(season, target.seasons, strict=True):
        carry_time_mlp(one, other)
    for one, other in zip(trend, target.trends, strict=True):
        carry_time_mlp(one, other)
    carry(source.out_cross_layer[0], target.features.expand)
    carry(source.out_cross_layer[2], target.features.contract)


def test_forecasts_agree() -> None:
    theirs = models.TimeMixer(
        h=12,
        input_size=48,
        n_series=3,
        d_model=8,
        d_ff=16,
        e_layers=2,
        moving_avg=25,
        channel_independence=1,
        down_sampling_layers=3,
        down_sampling_window=2,
        down_sampling_method="avg",
    )
    scramble(theirs)
    ours = backbones.build(
        "TimeMixer",
        "forecasting",
        input_len=48,
        horizon=12,
        channels=3,
        width=8,
        hidden=16,
        blocks=2,
    ).eval()
    for source, target in zip(theirs.normalize_layers, ours.revins, strict=True):
        carry_revin(source, target)
    carry(theirs.enc_embedding.value_embedding.tokenConv, ours.tokens)
    for source, target in zip(theirs.pdm_blocks, ours.blocks, strict=True):
        carry_block(source, target)
    for source, target in zip(theirs.predict_layers, ours.forecasts, strict=True):
        carry(source, target)
    carry(theirs.projection_layer, ours.output)
    x = windows(5, 48, 3)
    with torch.no_grad():
        expected = theirs({"insample_y": x, "futr_exog": None})
        assert_equal_outputs(ours(x), expected)
