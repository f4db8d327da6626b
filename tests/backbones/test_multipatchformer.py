from __future__ import annotations

import pytest
import torch

from sacm import backbones
from sacm.backbones.blocks.embedding import Positions
from sacm.backbones.multipatchformer import (
    SMALL,
    MultiPatchEmbedding,
    PiecewiseHead,
)


@pytest.mark.parametrize(
    ("length", "tokens", "patches", "strides"),
    [
        (96, 12, [8, 16, 24, 32], [8, 8, 7, 6]),
        (24, 3, [8, 16, 24, 24], [8, 4, 1, 1]),
        (10, 1, [8, 10, 10, 10], [8, 10, 10, 10]),
        (5, 1, [5, 5, 5, 5], [5, 5, 5, 5]),
    ],
)
def test_all_scales_agree_on_the_tokens(
    length: int, tokens: int, patches: list[int], strides: list[int]
) -> None:
    embedding = MultiPatchEmbedding(SMALL, input_len=length)
    assert [scale.embed.kernel_size[0] for scale in embedding.scales] == patches
    assert [scale.embed.stride[0] for scale in embedding.scales] == strides
    assert embedding(torch.randn(2, length)).shape == (2, tokens, SMALL.width)


def test_positions_double_the_exponent() -> None:
    table = Positions(5, 8, exponent=2.0).table
    expected = torch.tensor(3 * 10000 ** (-2 * 2 / 8))
    torch.testing.assert_close(table[3, 2:4], torch.stack((expected.sin(), expected.cos())))


@torch.no_grad()
def test_time_is_causal_and_channels_are_not() -> None:
    torch.manual_seed(0)
    model = backbones.build(
        "MultiPatchFormer", "forecasting", input_len=96, horizon=24, channels=3, size="small"
    ).eval()
    tokens = torch.randn(6, 12, SMALL.width)
    changed = tokens.clone()
    changed[:, 7:] += 1
    before, after = model.time[0](tokens, mask=model.mask), model.time[0](changed, mask=model.mask)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert ((before - after)[:, 7:].abs().amax(dim=(0, 2)) > 1e-3).all()
    x = torch.randn(2, 96, 3)
    other = x.clone()
    other[:, :, 2] = torch.randn(2, 96)
    assert (model(x) - model(other)).abs().amax(dim=(0, 1))[0] > 1e-4


@pytest.mark.parametrize("horizon", [1, 7, 8, 36, 60, 96, 99])
def test_pieces_make_up_any_horizon(horizon: int) -> None:
    head = PiecewiseHead(16, horizon=horizon, pieces=8)
    assert head(torch.randn(2, 3, 16)).shape == (2, 3, horizon)
    assert len(head.steps) == (8 if horizon >= 8 else 1)


@torch.no_grad()
def test_a_piece_reads_the_encoding_and_all_earlier_pieces() -> None:
    head = PiecewiseHead(16, horizon=24, pieces=8)
    encoding = torch.randn(2, 3, 16)
    known = encoding
    for step in head.steps:
        known = torch.cat((known, step(known)), dim=-1)
    assert [step.in_features for step in head.steps] == [16 + 3 * i for i in range(8)]
    torch.testing.assert_close(head(encoding), known[..., 16:])
