"""Windows filtered before the model sees them."""

from __future__ import annotations

import pytest
import torch

from sacm.errors import ArgumentError
from sacm.strategies import parse


@pytest.mark.parametrize("length", [24, 25, 96])
def test_hard_denoise_keeps_the_largest_coefficients(length: int) -> None:
    time = torch.arange(length, dtype=torch.float64)
    tone = torch.sin(2 * torch.pi * 3 * time / length)
    noisy = tone + 0.01 * torch.randn(length, generator=torch.Generator().manual_seed(0))
    filtered = parse("hard_denoise(keep=0.01)").inputs(noisy.view(1, -1, 1))
    assert torch.allclose(filtered[0, :, 0], tone, atol=0.01)
    spectrum = torch.fft.rfft(filtered[0, :, 0])
    assert int((spectrum.abs() > 1e-9).sum()) == 1


def test_lowpass_keeps_the_slow_part() -> None:
    x = torch.randn(2, 40, 3)
    slow = parse("hard_denoise(keep=0.2,kind=lowpass)").inputs(x)
    spectrum = torch.fft.rfft(slow, dim=1).abs()
    assert torch.allclose(spectrum[:, 4:], torch.zeros(()), atol=1e-4)
    assert torch.allclose(spectrum[:, :4], torch.fft.rfft(x, dim=1).abs()[:, :4], atol=1e-4)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="keep"):
        parse("hard_denoise(keep=0)")
