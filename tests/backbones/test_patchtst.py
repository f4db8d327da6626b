from __future__ import annotations

import pytest
import torch

from sacm import backbones
from sacm.backbones.patchtst import Encoder, PatchTSTClassifierConfig, PatchTSTConfig
from sacm.errors import ArgumentError


@pytest.mark.parametrize(
    ("length", "patches", "patch"),
    [(96, 12, 16), (24, 3, 16), (100, 12, 16), (8, 1, 16), (5, 1, 13)],
)
def test_number_of_patches(length: int, patches: int, patch: int) -> None:
    encoder = Encoder(PatchTSTConfig(width=8, hidden=8), input_len=length)
    assert encoder.features == patches * 8
    assert encoder.patch == patch
    assert encoder(torch.randn(2, length, 3)).shape == (2, 3, patches * 8)


@pytest.mark.parametrize(("length", "patch", "stride"), [(1023, 16, 8), (1024, 64, 32)])
def test_long_windows_to_classify_are_cut_coarser(length: int, patch: int, stride: int) -> None:
    config = PatchTSTClassifierConfig().at_length(length)
    assert (config.patch, config.stride, config.width) == (patch, stride, 64)
    model = backbones.build(
        "PatchTST", "classification", input_len=length, channels=1, classes=2, size="small"
    )
    assert model.encoder.patch == patch


@torch.no_grad()
def test_rows_are_windows_then_channels() -> None:
    torch.manual_seed(0)
    encoder = Encoder(PatchTSTConfig(width=8, hidden=8), input_len=24).eval()
    x = torch.randn(2, 24, 3)
    for b in range(2):
        for c in range(3):
            alone = encoder(x[b : b + 1, :, c : c + 1])[0, 0]
            torch.testing.assert_close(encoder(x)[b, c], alone, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_forecast_follows_scale_and_level_of_the_window() -> None:
    torch.manual_seed(0)
    model = backbones.build(
        "PatchTST", "forecasting", input_len=96, horizon=24, channels=2, size="small"
    ).eval()
    x = torch.randn(2, 96, 2)
    torch.testing.assert_close(model(10 * x + 100), 10 * model(x) + 100, atol=1e-2, rtol=1e-4)


def test_wrong_settings() -> None:
    with pytest.raises(ArgumentError, match="stride must be at least 1"):
        backbones.build("PatchTST", "anomaly", input_len=96, channels=2, stride=0)
