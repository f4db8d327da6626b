"""Instance normalisation, embeddings and decomposition against public packages."""

from __future__ import annotations

import pytest
import torch

from sacm.backbones.blocks.embedding import Positions, TokenConv
from sacm.backbones.blocks.normalisation import MovingAverage, RevIN

from .carry import assert_equal_outputs, carry, scramble, windows


@pytest.fixture(scope="module")
def layers():
    return pytest.importorskip(
        "neuralforecast.common._modules", reason="compares with neuralforecast"
    )


@pytest.mark.parametrize("affine", [False, True])
def test_instance_normalisation_and_its_inverse(layers, affine: bool) -> None:
    theirs, ours = layers.RevIN(4, affine=affine), RevIN(4 if affine else None)
    scramble(theirs)
    if affine:
        with torch.no_grad():
            ours.weight.copy_(theirs.affine_weight)
            ours.bias.copy_(theirs.affine_bias)
    x, y = windows(5, 30, 4), windows(5, 12, 4) / 3
    with torch.no_grad():
        normal, statistics = ours.normalise(x)
        assert_equal_outputs(normal, theirs(x, "norm"))
        assert_equal_outputs(ours.restore(y, statistics), theirs(y, "denorm"))


def test_tokens_with_positions(layers) -> None:
    theirs = layers.DataEmbedding(c_in=4, exog_input_size=0, hidden_size=16)
    scramble(theirs)
    convolution, positions = TokenConv(4, 16), Positions(30, 16)
    carry(theirs.value_embedding.tokenConv, convolution)
    x = windows(5, 30, 4)
    with torch.no_grad():
        assert_equal_outputs(positions(convolution(x)), theirs(x))


@pytest.mark.parametrize("length", [3, 12, 96])
def test_decomposition(length: int) -> None:
    models = pytest.importorskip(
        "transformers.models.autoformer.modeling_autoformer", reason="compares with transformers"
    )
    theirs = models.AutoformerSeriesDecompositionLayer(models.AutoformerConfig(moving_average=25))
    x = windows(5, length, 4)
    _, trend = theirs(x)
    assert_equal_outputs(MovingAverage(25)(x.transpose(1, 2)).transpose(1, 2), trend)
