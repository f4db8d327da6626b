from __future__ import annotations

import math

import torch

from sacm.backbones.blocks.normalisation import symmetric_distance


def maps(seed: int, *, size: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(2, 3, size, size, generator=generator)).softmax(dim=-1)


def naive(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    batch, heads, rows, columns = first.shape
    result = torch.zeros(batch, rows)
    for b in range(batch):
        for i in range(rows):
            for h in range(heads):
                for j in range(columns):
                    p, q = first[b, h, i, j].item(), second[b, h, i, j].item()
                    result[b, i] += p * (math.log(p + 1e-4) - math.log(q + 1e-4)) / heads
    return result


def test_sums_both_directions_over_keys_and_averages_over_heads() -> None:
    a, b = maps(0), maps(1)
    torch.testing.assert_close(symmetric_distance(a, b), naive(a, b) + naive(b, a))


def test_is_symmetric_to_the_last_bit_and_zero_for_equal_maps() -> None:
    a, b = maps(0), maps(1)
    assert torch.equal(symmetric_distance(a, b), symmetric_distance(b, a))
    assert symmetric_distance(a, a).abs().max() == 0


def test_zero_entries_stay_finite() -> None:
    one_hot, spread = torch.eye(4)[None, None], torch.full((1, 1, 4, 4), 0.25)
    one_hot.requires_grad_()
    distance = symmetric_distance(one_hot, spread)
    distance.sum().backward()
    assert distance.isfinite().all()
    assert one_hot.grad.isfinite().all()


def test_keeps_float32_under_autocast() -> None:
    a, b = maps(0, size=40), maps(1, size=40)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = symmetric_distance(a, b)
    assert torch.equal(found, symmetric_distance(a, b))
