from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sacm import backbones
from sacm.backbones.blocks.transformer import split_heads
from sacm.backbones.informer import Distil, InformerConfig, SparseAttention

TINY = InformerConfig(width=8, heads=2, factor=2)


def informer(**settings: int) -> backbones.Backbone:
    torch.manual_seed(0)
    return backbones.build(
        "Informer", "forecasting", input_len=24, horizon=8, channels=3, size="small", **settings
    )


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, 1), (2, 2), (12, 9), (24, 12), (48, 12), (72, 15), (96, 15), (144, 15), (768, 21)],
)
def test_active_queries(length: int, expected: int) -> None:
    assert SparseAttention(InformerConfig(width=8), length=length, seed=0).active == expected


def naive(attention: SparseAttention, x: Tensor) -> Tensor:
    """The definition, one window, head and query at a time."""
    q, k, v = (
        split_heads(layer(x), attention.heads)
        for layer in (attention.query, attention.key, attention.value)
    )
    batch, heads, length, size = q.shape
    result = torch.zeros(batch, length, heads * size)
    for b in range(batch):
        for h in range(heads):
            measures = []
            for t in range(length):
                sampled = [q[b, h, t] @ k[b, h, j] for j in attention.keys[t].tolist()]
                measures.append(float(max(sampled) - sum(sampled) / length))
            ranked = sorted(range(length), key=lambda t: -measures[t])
            attending = set(ranked[: attention.active])
            for t in range(length):
                visible = t + 1 if attention.causal else length
                if t in attending:
                    logits = k[b, h, :visible] @ q[b, h, t] / math.sqrt(size)
                    row = logits.softmax(dim=0) @ v[b, h, :visible]
                else:
                    row = v[b, h, :visible].sum(dim=0)
                    row = row if attention.causal else row / length
                result[b, t, h * size : (h + 1) * size] = row
    return attention.output(result)


@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_sparse_attention_against_a_naive_loop(causal: bool) -> None:
    torch.manual_seed(0)
    attention = SparseAttention(TINY, length=20, seed=3, causal=causal).eval()
    x = 3 * torch.randn(2, 20, 8)
    torch.testing.assert_close(attention(x), naive(attention, x), atol=1e-5, rtol=1e-5)


def test_keys_are_fixed_by_the_layer_number_and_fresh_in_training() -> None:
    one, same, other = (SparseAttention(TINY, length=20, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.keys, same.keys)
    assert not torch.equal(one.keys, other.keys)
    assert "keys" not in one.state_dict()
    q = torch.randn(4, 2, 20, 4)
    chosen = {tuple(one.train().choose(q, q.flip(2)).flatten().tolist()) for _ in range(5)}
    assert len(chosen) > 1
    assert torch.equal(one.eval().choose(q, q.flip(2)), one.choose(q, q.flip(2)))


@pytest.mark.parametrize(("length", "halved"), [(96, 48), (24, 12), (25, 13), (1, 1)])
def test_distil_halves_upwards(length: int, halved: int) -> None:
    assert Distil(8).eval()(torch.randn(2, length, 8)).shape == (2, halved, 8)


def test_decoder_sees_known_values_then_zeros_in_training_and_evaluation() -> None:
    model = informer()
    x = torch.randn(2, 24, 3)
    for training in (True, False):
        seen: list[Tensor] = []
        model.train(training)
        handle = model.decoder_tokens.values.register_forward_hook(
            lambda _, inputs, __, seen=seen: seen.append(inputs[0])
        )
        model(x)
        handle.remove()
        assert torch.equal(seen[0][:, :12], x[:, 12:])
        assert torch.equal(seen[0][:, 12:], torch.zeros(2, 8, 3))
