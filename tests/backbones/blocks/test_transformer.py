from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.blocks.transformer import MLP, Attention, EncoderLayer, merge_heads, split_heads
from sacm.errors import ArgumentError

SIZES = SimpleNamespace(width=16, heads=4, hidden=32, dropout=0.1)


def by_hand(attention: Attention, queries: Tensor, memory: Tensor, **options: Tensor) -> Tensor:
    """One window, one head, one query at a time."""
    q, k, v = attention.query(queries), attention.key(memory), attention.value(memory)
    size = q.shape[-1] // attention.heads
    rows = torch.zeros_like(q)
    for b in range(q.shape[0]):
        for head in range(attention.heads):
            part = slice(head * size, (head + 1) * size)
            for t in range(q.shape[1]):
                logits = k[b, :, part] @ q[b, t, part]
                logits = logits * options.get("scale", torch.ones(1))
                logits = logits + options.get("shift", torch.zeros(1))
                logits = logits / math.sqrt(size)
                if "mask" in options:
                    logits = torch.where(options["mask"][t], -math.inf, logits)
                rows[b, t, part] = logits.softmax(dim=0) @ v[b, :, part]
    return attention.output(rows)


@pytest.fixture
def attention() -> Attention:
    torch.manual_seed(0)
    return Attention(12, 3, 0.3).eval()


def test_heads_split_and_merge_in_order() -> None:
    x = torch.arange(24.0).reshape(1, 2, 12)
    assert split_heads(x, 3)[0, 1, 0].tolist() == [4, 5, 6, 7]
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


def test_mask_scale_and_shift(attention: Attention) -> None:
    x = torch.randn(2, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
    scale, shift = torch.tensor(1.7), torch.randn(5)
    found = attention(x, mask=mask, scale=scale, shift=shift)
    expected = by_hand(attention, x, x, mask=mask, scale=scale, shift=shift)
    torch.testing.assert_close(found, expected)


def test_dropout_acts_on_the_weights(attention: Attention) -> None:
    seen: list[Tensor] = []
    attention.dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    attention(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    assert seen[0].shape == (2, 3, 5, 7)
    torch.testing.assert_close(seen[0].sum(dim=-1), torch.ones(2, 3, 5))


def test_uneven_heads_are_refused() -> None:
    with pytest.raises(ArgumentError, match="cannot be divided into 5 heads"):
        Attention(12, 5, 0.1)


def test_options_go_to_the_attention() -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(SIZES).eval()
    x, memory = torch.randn(3, 7, 16), torch.randn(3, 5, 16)
    y = layer.attention_norm(x + layer.attention(x, memory))
    torch.testing.assert_close(layer(x, memory=memory), layer.mlp_norm(y + layer.mlp(y)))


def test_another_attention_takes_the_place() -> None:
    class Reverse(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flip(1)

    layer = EncoderLayer(SIZES, Reverse()).eval()
    x = torch.randn(3, 7, 16)
    y = layer.attention_norm(x + x.flip(1))
    torch.testing.assert_close(layer(x), layer.mlp_norm(y + layer.mlp(y)))


def test_mlp_drops_its_hidden_layer() -> None:
    mlp = MLP(4, 6, 0.5).eval()
    seen: list[Tensor] = []
    mlp.dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    x = torch.randn(2, 4)
    found = mlp(x)
    torch.testing.assert_close(seen[0], F.gelu(mlp.expand(x), approximate="none"))
    torch.testing.assert_close(found, mlp.contract(seen[0]))
