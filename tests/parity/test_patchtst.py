"""PatchTST against transformers', patches, encoder and head.

Theirs neither repeats the end of the window nor has an affine instance normalisation: both are
done before and after, and its position table is set to ours.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm import backbones
from sacm.backbones.blocks.transformer import EncoderLayer

from .carry import assert_equal_outputs, carry, scramble, windows

transformers = pytest.importorskip("transformers", reason="compares with transformers")


def carry_layer(source: nn.Module, target: EncoderLayer) -> None:
    carry(source.self_attn.q_proj, target.attention.query)
    carry(source.self_attn.k_proj, target.attention.key)
    carry(source.self_attn.v_proj, target.attention.value)
    carry(source.self_attn.out_proj, target.attention.output)
    carry(source.norm_sublayer1, target.attention_norm)
    carry(source.ff[0], target.mlp.expand)
    carry(source.ff[3], target.mlp.contract)
    carry(source.norm_sublayer3, target.mlp_norm)


@pytest.mark.parametrize("length", [40, 96])
def test_forecasts_agree(length: int) -> None:
    theirs = transformers.PatchTSTForPrediction(
        transformers.PatchTSTConfig(
            num_input_channels=3,
            context_length=length + 8,
            patch_length=16,
            patch_stride=8,
            d_model=32,
            num_attention_heads=4,
            ffn_dim=64,
            num_hidden_layers=2,
            norm_type="layernorm",
            pre_norm=False,
            scaling=None,
            loss="mse",
            prediction_length=12,
            use_cls_token=False,
            pooling_type=None,
        )
    )
    settings = {"width": 32, "heads": 4, "hidden": 64, "layers": 2}
    ours = backbones.build(
        "PatchTST", "forecasting", input_len=length, horizon=12, channels=3, **settings
    )
    scramble(ours)
    encoder, revin = ours.network.encoder, ours.network.revin
    with torch.no_grad():
        theirs.model.encoder.positional_encoder.position_enc.copy_(encoder.positions.table)
    scramble(theirs.model.encoder.layers)
    carry(theirs.model.encoder.embedder.input_embedding, encoder.embed)
    for source, target in zip(theirs.model.encoder.layers, encoder.layers, strict=True):
        carry_layer(source, target)
    carry(theirs.head.projection, ours.network.head)

    x = windows(4, length, 3)
    normal, statistics = revin.normalise(x)
    padded = torch.cat((normal, normal[:, -1:].expand(-1, 8, -1)), dim=1)
    with torch.no_grad():
        outputs = theirs.eval()(past_values=padded).prediction_outputs  # [B, H, C]
        assert_equal_outputs(ours(x), revin.restore(outputs, statistics))
