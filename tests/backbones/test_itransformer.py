from __future__ import annotations

import torch

from sacm import backbones
from sacm.backbones.itransformer import Encoder, ITransformerConfig


@torch.no_grad()
def test_tokens_are_channels_even_when_there_are_as_many_steps() -> None:
    torch.manual_seed(0)
    encoder = Encoder(ITransformerConfig(width=8, hidden=8), input_len=6).eval()
    seen: list[torch.Tensor] = []
    encoder.embed.register_forward_hook(lambda _, __, output: seen.append(output))
    x = torch.randn(2, 6, 6)
    encoder(x)
    for channel in range(6):
        torch.testing.assert_close(seen[0][:, channel], encoder.embed(x[:, :, channel]))


@torch.no_grad()
def test_channels_in_another_order_give_the_same_forecasts_in_that_order() -> None:
    torch.manual_seed(0)
    model = backbones.build(
        "iTransformer", "forecasting", input_len=24, horizon=8, channels=5, size="small"
    ).eval()
    x, order = torch.randn(2, 24, 5), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(model(x[:, :, order]), model(x)[:, :, order], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_classifier_reads_the_level_that_forecasting_removes() -> None:
    torch.manual_seed(0)
    sizes = {"input_len": 24, "channels": 3, "size": "small"}
    x = torch.randn(2, 24, 3)
    classifier = backbones.build("iTransformer", "classification", classes=3, **sizes).eval()
    detector = backbones.build("iTransformer", "anomaly", **sizes).eval()
    assert (classifier(x + 5) - classifier(x)).abs().max() > 1e-2
    torch.testing.assert_close(detector(x + 5), detector(x) + 5, atol=1e-4, rtol=1e-4)
