from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm import backbones
from sacm.backbones.timesnet import (
    Inception,
    PeriodBlock,
    TimesNetConfig,
    strongest_periods,
)

from .cases import noise

TINY = TimesNetConfig(width=4, hidden=6, periods=3)


def naive_block(block: PeriodBlock, z: Tensor) -> Tensor:
    """One window, one bin and one convolution at a time."""
    outputs = []
    for window in z:  # [T, d]
        length = len(window)
        amplitude = torch.fft.rfft(window, dim=0).abs().mean(dim=1)
        bins = sorted(range(1, length // 2 + 1), key=lambda k: -amplitude[k].item())
        bins = bins[: block.periods]
        weights = torch.stack([amplitude[k] for k in bins]).softmax(dim=0)
        total = window.clone()
        for weight, k in zip(weights, bins, strict=True):
            period = length // k
            cycles = -(-length // period)
            image = torch.zeros(cycles * period, window.shape[1])
            image[:length] = window
            image = image.reshape(cycles, period, -1).permute(2, 0, 1)[None]
            image = block.contract(F.gelu(block.expand(image)))
            total = total + weight * image[0].permute(1, 2, 0).reshape(cycles * period, -1)[:length]
        outputs.append(total)
    return torch.stack(outputs)


@pytest.mark.parametrize("length", [5, 24, 37])
def test_block_equals_one_window_and_one_period_at_a_time(length: int) -> None:
    block, z = PeriodBlock(TINY), noise(6, length, 4)
    with torch.no_grad():
        torch.testing.assert_close(block(z), naive_block(block, z), atol=1e-5, rtol=1e-5)


def test_gradient_flows_through_images_and_amplitudes() -> None:
    block = PeriodBlock(TimesNetConfig(width=2, hidden=3, periods=2)).double()
    z = noise(2, 8, 2).double().requires_grad_()
    assert torch.autograd.gradcheck(block, z)


def test_inception_is_the_mean_of_same_padded_convolutions() -> None:
    inception, images = Inception(3, 5, kernels=(1, 3, 5)), noise(2, 3, 4, 6)
    for bias in inception.biases:
        nn.init.normal_(bias)
    expected = torch.stack(
        [
            F.conv2d(images, weight, bias, padding=weight.shape[-1] // 2)
            for weight, bias in zip(inception.weights, inception.biases, strict=True)
        ]
    ).mean(dim=0)
    torch.testing.assert_close(inception(images), expected, atol=1e-5, rtol=1e-5)


def test_planted_periods_are_found_per_window() -> None:
    time = torch.arange(48.0)
    first = torch.sin(2 * torch.pi * time / 12) + 0.3 * torch.sin(2 * torch.pi * time / 4)
    second = torch.sin(2 * torch.pi * time / 8) + 0.3 * torch.sin(2 * torch.pi * time / 24)
    z = torch.stack((first, second))[..., None] + 100  # the mean is no period
    periods, amplitudes = strongest_periods(z, 2)
    assert periods.tolist() == [[12, 4], [8, 24]]
    torch.testing.assert_close(
        amplitudes, torch.tensor([[24.0, 7.2], [24.0, 7.2]]), atol=1e-3, rtol=0
    )


def test_calendar_is_read_from_the_look_back_alone() -> None:
    model = backbones.build(
        "TimesNet",
        "forecasting",
        input_len=24,
        horizon=6,
        channels=2,
        size="small",
        calendar_sizes=(24, 7, 31, 366),
    ).eval()
    x, stamps = noise(3, 24, 2), torch.rand(3, 30, 4, generator=torch.Generator().manual_seed(1))
    horizon, past = stamps.clone(), stamps.clone()
    horizon[:, 24:] = 0
    past[:, :24] = 0
    with torch.no_grad():
        assert torch.equal(model(x, horizon), model(x, stamps))
        assert not torch.allclose(model(x, past), model(x, stamps))
