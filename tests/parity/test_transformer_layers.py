"""Attention and layers against torch's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.backbones import tranad
from sacm.backbones.blocks.transformer import Attention, EncoderLayer

from .carry import assert_equal_outputs, carry, scramble

CONFIG = tranad.TranADConfig(width=16, heads=4, hidden=32)


def tokens(length: int, seed: int = 0) -> Tensor:
    return torch.randn(3, length, 16, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def carry_attention(source: nn.MultiheadAttention, target: Attention) -> None:
    for name, part in zip(("query", "key", "value"), range(3), strict=True):
        rows = slice(16 * part, 16 * (part + 1))
        target.get_submodule(name).weight.copy_(source.in_proj_weight[rows])
        target.get_submodule(name).bias.copy_(source.in_proj_bias[rows])
    carry(source.out_proj, target.output)


def future(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def test_attention_with_memory_and_mask() -> None:
    theirs = nn.MultiheadAttention(16, 4, batch_first=True)
    scramble(theirs)
    ours = Attention(16, 4, 0.1).eval()
    carry_attention(theirs, ours)
    x, memory = tokens(7), tokens(5, seed=1)
    with torch.no_grad():
        assert_equal_outputs(ours(x, memory), theirs(x, memory, memory)[0])
        masked, _ = theirs(x, x, x, attn_mask=future(7))
        assert_equal_outputs(ours(x, mask=future(7)), masked)


def their_encoder_layer() -> nn.TransformerEncoderLayer:
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True)
    scramble(layer)
    return layer


def test_encoder_layer() -> None:
    theirs, ours = their_encoder_layer(), EncoderLayer(CONFIG).eval()
    carry_attention(theirs.self_attn, ours.attention)
    carry(theirs.norm1, ours.attention_norm)
    carry(theirs.linear1, ours.mlp.expand)
    carry(theirs.linear2, ours.mlp.contract)
    carry(theirs.norm2, ours.mlp_norm)
    x = tokens(9)
    with torch.no_grad():
        assert_equal_outputs(ours(x), theirs(x))


def test_tranad_encoder_layer() -> None:
    theirs, ours = their_encoder_layer(), tranad.TranADEncoderLayer(CONFIG).eval()
    carry_attention(theirs.self_attn, ours.attention)
    carry(theirs.norm1, ours.attention_residual.norm)
    carry(theirs.linear1, ours.mlp.expand)
    carry(theirs.linear2, ours.mlp.contract)
    carry(theirs.norm2, ours.mlp_residual.norm)
    x = tokens(9)
    with torch.no_grad():
        assert_equal_outputs(ours(x), theirs(x))


def test_tranad_decoder() -> None:
    theirs = nn.TransformerDecoderLayer(16, 4, 32, activation="gelu", batch_first=True)
    scramble(theirs)
    ours = tranad.Decoder(CONFIG, length=9, channels=5).eval()
    carry_attention(theirs.self_attn, ours.self_attention)
    carry_attention(theirs.multihead_attn, ours.cross_attention)
    carry(theirs.norm1, ours.self_residual.norm)
    carry(theirs.norm2, ours.cross_residual.norm)
    carry(theirs.linear1, ours.mlp.expand)
    carry(theirs.linear2, ours.mlp.contract)
    carry(theirs.norm3, ours.mlp_residual.norm)
    x, memory = tokens(9), tokens(9, seed=1)
    with torch.no_grad():
        expected = theirs(x, memory, tgt_mask=future(9))
        assert_equal_outputs(ours(x, memory), ours.output(expected).sigmoid())
