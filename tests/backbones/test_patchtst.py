from __future__ import annotations

import pytest
import torch

from sacm import backbones
from sacm.backbones.patchtst import Encoder, PatchTSTConfig


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
    for size, width in (("paper", 64), ("small", 32)):
        model = backbones.build(
            "PatchTST", "classification", input_len=length, channels=1, classes=2, size=size
        )
        encoder = model.encoder
        assert (encoder.patch, encoder.stride, encoder.embed.out_features) == (patch, stride, width)
