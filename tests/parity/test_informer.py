"""Informer's sparse attention against neuralforecast's, its distilling step against transformers'.

Both draw the sampled keys of a training forward from torch's default generator: the same seed
gives the same keys. neuralforecast then reads `[B, h, T, e]` as `[B, T, h * e]`, mixing time with
heads; its result is taken before that step.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sacm.backbones.informer import Distil, InformerConfig, SparseAttention

from .carry import assert_equal_outputs, carry, scramble


def tokens(length: int) -> Tensor:
    return torch.randn(5, length, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [12, 40])
def test_sparse_attention_agrees_on_the_same_sampled_keys(length: int, causal: bool) -> None:
    models = pytest.importorskip(
        "neuralforecast.models.informer", reason="compares with neuralforecast"
    )
    theirs = models.ProbAttention(causal, factor=3, attention_dropout=0.0)
    config = InformerConfig(width=16, heads=4, dropout=0.0)
    ours = SparseAttention(config, length=length, seed=0, causal=causal)
    scramble(ours).train()
    x = tokens(length)
    with torch.no_grad():
        q, k, v = (each(x).unflatten(-1, (4, 4)) for each in (ours.query, ours.key, ours.value))
        torch.manual_seed(0)
        context, _ = theirs(q, k, v, attn_mask=None)  # [B, h, T, e]
        expected = ours.output(context.transpose(1, 2).flatten(2))
        torch.manual_seed(0)
        assert_equal_outputs(ours(x), expected)


@pytest.mark.parametrize("length", [20, 21])
def test_distilling_agrees(length: int) -> None:
    models = pytest.importorskip(
        "transformers.models.informer.modeling_informer", reason="compares with transformers"
    )
    theirs = scramble(models.InformerConvLayer(16))
    ours = Distil(16).eval()
    carry(theirs.downConv, ours.convolution)
    carry(theirs.norm, ours.norm)
    x = tokens(length)
    with torch.no_grad():
        assert_equal_outputs(ours(x), theirs(x))
