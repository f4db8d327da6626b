"""TimesNet against neuralforecast's, the whole network.

Theirs takes the periods of the batch's mean spectrum, ours those of each window: fed one window at
a time the two rules are the same. Theirs has one channel and leaves normalisation to the caller.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm import backbones
from sacm.backbones.blocks.normalisation import RevIN
from sacm.backbones.timesnet import Inception

from .carry import assert_equal_outputs, carry, scramble, windows

models = pytest.importorskip(
    "neuralforecast.models.timesnet", reason="compares with neuralforecast"
)


@torch.no_grad()
def carry_inception(source: nn.Module, target: Inception) -> None:
    for convolution, weight, bias in zip(
        source.kernels, target.weights, target.biases, strict=True
    ):
        weight.copy_(convolution.weight)
        bias.copy_(convolution.bias)


def test_forecasts_agree_window_by_window() -> None:
    theirs = models.TimesNet(
        h=12,
        input_size=36,
        hidden_size=8,
        conv_hidden_size=16,
        top_k=3,
        num_kernels=3,
        encoder_layers=2,
    )
    scramble(theirs)
    settings = {"width": 8, "hidden": 16, "blocks": 2, "periods": 3}
    ours = backbones.build(
        "TimesNet", "forecasting", input_len=36, horizon=12, channels=1, **settings
    ).eval()
    carry(theirs.enc_embedding.value_embedding.tokenConv, ours.tokens.values)
    carry(theirs.predict_linear, ours.stretch)
    for source, target in zip(theirs.model, ours.blocks.blocks, strict=True):
        carry_inception(source.conv[0], target.expand)
        carry_inception(source.conv[2], target.contract)
    carry(theirs.layer_norm, ours.blocks.norm)
    carry(theirs.projection, ours.output)

    x, revin = windows(6, 36, 1), RevIN()
    normal, statistics = revin.normalise(x)
    with torch.no_grad():
        expected = torch.cat(
            [theirs({"insample_y": window[None], "futr_exog": None}) for window in normal]
        )
        assert_equal_outputs(ours(x), revin.restore(expected, statistics))
