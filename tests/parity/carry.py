"""Carrying the weights of another package's layers into ours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.backbones.blocks.transformer import Attention, EncoderLayer

TOLERANCE = 1e-4


def assert_equal_outputs(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


@torch.no_grad()
def scramble(module: nn.Module, seed: int = 0) -> nn.Module:
    """Random values for every parameter, so that zero biases and unit gains hide nothing."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.add_(0.1 * noise)
    return module.eval()


@torch.no_grad()
def carry(source: nn.Module, target: nn.Module) -> None:
    """Weight and bias of one layer; a convolution of kernel 1 may become a Linear."""
    names = [name for name, _ in source.named_parameters()]
    assert names == [name for name, _ in target.named_parameters()]
    for name, value in source.named_parameters():
        parameter = target.get_parameter(name)
        parameter.copy_(value.reshape(parameter.shape))


def carry_attention(source: nn.Module, target: Attention) -> None:
    """From neuralforecast's `AttentionLayer`."""
    carry(source.query_projection, target.query)
    carry(source.key_projection, target.key)
    carry(source.value_projection, target.value)
    carry(source.out_projection, target.output)


def carry_layer(source: nn.Module, target: EncoderLayer) -> None:
    """From neuralforecast's `TransEncoderLayer`."""
    carry_attention(source.attention, target.attention)
    carry(source.norm1, target.attention_norm)
    carry(source.conv1, target.mlp.expand)
    carry(source.conv2, target.mlp.contract)
    carry(source.norm2, target.mlp_norm)


def windows(batch: int, length: int, channels: int) -> Tensor:
    """Noisy sines off zero, `[B, L, C]`."""
    generator = torch.Generator().manual_seed(7)
    time = torch.arange(length)[None, :, None]
    period = 5 + 15 * torch.rand(batch, 1, channels, generator=generator)
    noise = torch.randn(batch, length, channels, generator=generator)
    return 3 + 2 * torch.sin(6.28 * time / period) + 0.5 * noise
