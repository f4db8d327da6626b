from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from sacm import backbones
from sacm.backbones.nsformer import Encoder, NSFormerConfig, Projector

from .cases import noise

TINY = NSFormerConfig(width=8, heads=2, hidden=16, layers=1, projector=6)


def tiny_encoder() -> Encoder:
    torch.manual_seed(0)
    return Encoder(TINY, input_len=12, channels=3).eval()


def silence(projector: Projector) -> None:
    nn.init.zeros_(projector.contract.weight)


def test_projector_convolves_along_channels_with_steps_as_inputs() -> None:
    projector = Projector(input_len=5, channels=4, hidden=6, outputs=2)
    x, statistic = noise(3, 5, 4), noise(3, 1, 4, seed=1)
    weight = projector.summary.weight[0]  # [L, 3]
    summary = torch.zeros(3, 4)
    for channel in range(4):
        for tap in range(3):
            summary[:, channel] += x[:, :, (channel + tap - 1) % 4] @ weight[:, tap]
    hidden = projector.expand(torch.cat((summary, statistic[:, 0]), dim=1)).relu()
    torch.testing.assert_close(projector(x, statistic), projector.contract(hidden))


def test_attention_logits_are_scaled_and_shifted() -> None:
    encoder, x = tiny_encoder(), noise(4, 12, 3)
    attention = encoder.layers[0].attention
    seen: list[Tensor] = []
    attention.dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    with torch.no_grad():
        encoder(x)
        mean, std = (
            x.mean(dim=1, keepdim=True),
            (x.var(dim=1, correction=0, keepdim=True) + 1e-5).sqrt(),
        )
        tau = encoder.scale(x, std).exp()  # [B, 1]
        delta = encoder.shift(x, mean)  # [B, L]
        z = encoder.tokens((x - mean) / std)
        q, k = (each(z).unflatten(-1, (2, 4)) for each in (attention.query, attention.key))
        logits = torch.einsum("bihe,bjhe->bhij", q, k) * tau[:, :, None, None]
        logits = (logits + delta[:, None, None, :]) / math.sqrt(4)
    torch.testing.assert_close(seen[0], logits.softmax(dim=-1), atol=1e-5, rtol=1e-5)


def test_projectors_give_back_what_normalisation_took() -> None:
    encoder, x = tiny_encoder(), noise(4, 12, 3)
    with torch.no_grad():
        raised, _ = encoder(3 * x + 2)
        features, _ = encoder(x)
        assert (raised - features).abs().max() > 1e-3
        silence(encoder.scale)
        silence(encoder.shift)
        raised, _ = encoder(3 * x + 2)
        features, _ = encoder(x)
    torch.testing.assert_close(raised, features, atol=1e-4, rtol=1e-4)


def test_reconstruction_is_in_the_units_of_the_window() -> None:
    model = backbones.build("NSFormer", "anomaly", input_len=24, channels=3, size="small").eval()
    silence(model.encoder.scale)
    silence(model.encoder.shift)
    x = noise(4, 24, 3)
    with torch.no_grad():
        torch.testing.assert_close(model(10 * x + 4), 10 * model(x) + 4, atol=1e-2, rtol=1e-3)


def test_huge_windows_stay_finite() -> None:
    model = backbones.build("NSFormer", "anomaly", input_len=24, channels=3, size="small")
    x = 1e6 * noise(4, 24, 3)
    loss = model.training_loss(x)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(("length", "width"), [(1023, 512), (1024, 64)])
def test_long_windows_are_classified_by_a_narrow_network(length: int, width: int) -> None:
    model = backbones.build("NSFormer", "classification", input_len=length, channels=1, classes=2)
    layers = model.encoder.layers
    assert layers[0].attention_norm.weight.shape == (width,)
    assert (layers[0].attention.heads, len(layers)) == ((1, 1) if length >= 1024 else (8, 2))
