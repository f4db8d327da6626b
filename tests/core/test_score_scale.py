"""Scores without scale."""

from __future__ import annotations

import torch

from sacm.core.config import SACMConfig
from sacm.core.scorer import SpectralScorer

WINDOWS = torch.randn(6, 48, 3, generator=torch.Generator().manual_seed(0))


def test_a_score_without_scale_is_the_residual_over_the_deviation_of_the_channel() -> None:
    free, plain = SpectralScorer(3, SACMConfig(scale="free")), SpectralScorer(3)
    louder = WINDOWS.double() * torch.tensor([1.0, 10, 100]) + 5
    for windows in (WINDOWS.double(), louder):
        expected = plain.double()(windows).channel_scores / windows_deviation(windows)
        found = free.double()(windows).channel_scores
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert (free(louder).channel_scores <= 1.01).all()


def windows_deviation(x: torch.Tensor) -> torch.Tensor:
    """Deviation of what a least-squares line leaves over, `[B, C]`."""
    time = torch.stack([torch.ones(48), torch.arange(48.0)], dim=1).double()
    line = time @ torch.linalg.lstsq(time, x.transpose(0, 1).flatten(1)).solution
    rest = x.transpose(0, 1).flatten(1) - line
    return rest.std(dim=0, correction=0).view(len(x), -1)


def test_flat_windows_score_zero_without_scale_and_have_finite_gradients() -> None:
    scorer = SpectralScorer(3, SACMConfig(scale="free"))
    flat = torch.full((2, 48, 3), 1e4).requires_grad_()
    scores = scorer(flat).scores
    assert (scores < 0.2).all()
    scores.sum().backward()
    assert flat.grad is not None
    assert flat.grad.isfinite().all()
