from __future__ import annotations

import torch

from sacm.backbones.blocks.normalisation import full_precision, widen


def test_autocast_is_off_inside_and_on_again_after() -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with full_precision(x):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16


def test_only_half_width_is_widened() -> None:
    widths = {
        torch.bfloat16: torch.float32,
        torch.float16: torch.float32,
        torch.float32: torch.float32,
        torch.float64: torch.float64,
    }
    for given, expected in widths.items():
        assert widen(torch.zeros(1, dtype=given)).dtype == expected
