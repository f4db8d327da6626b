"""iTransformer against neuralforecast's, the whole network."""

from __future__ import annotations

import pytest
import torch

from sacm import backbones

from .carry import assert_equal_outputs, carry, carry_layer, scramble, windows

models = pytest.importorskip(
    "neuralforecast.models.itransformer", reason="compares with neuralforecast"
)


@pytest.mark.parametrize("heads", [1, 4])
def test_forecasts_agree(heads: int) -> None:
    theirs = models.iTransformer(
        h=12, input_size=48, n_series=5, hidden_size=32, n_heads=heads, e_layers=2, d_ff=64
    )
    scramble(theirs)
    settings = {"width": 32, "heads": heads, "hidden": 64, "layers": 2}
    ours = backbones.build(
        "iTransformer", "forecasting", input_len=48, horizon=12, channels=5, **settings
    ).eval()
    carry(theirs.enc_embedding.value_embedding, ours.network.encoder.embed)
    for source, target in zip(theirs.encoder.attn_layers, ours.network.encoder.layers, strict=True):
        carry_layer(source, target)
    carry(theirs.encoder.norm, ours.network.encoder.norm)
    carry(theirs.projector, ours.network.head)
    x = windows(6, 48, 5)
    with torch.no_grad():
        assert_equal_outputs(ours(x), theirs({"insample_y": x.clone()}))
