from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sacm.backbones.blocks.normalisation import (
    MovingAverage,
    RevIN,
    full_precision,
    symmetric_distance,
)
from sacm.errors import ArgumentError


def windows(scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return scale * (torch.randn(3, 20, 2, generator=generator) + 5)


def test_statistics_are_numpy_population_ones() -> None:
    x = windows()
    mean, std = RevIN().normalise(x)[1]
    np.testing.assert_allclose(mean, x.numpy().mean(axis=1, keepdims=True), rtol=1e-5)
    expected = np.sqrt(x.numpy().var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(std, expected, rtol=1e-5)


@pytest.mark.parametrize("affine", [False, True])
def test_restore_undoes_normalise(affine: bool) -> None:
    revin = RevIN(2 if affine else None)
    if affine:
        with torch.no_grad():
            revin.weight.copy_(torch.tensor([0.5, 2.0]))
            revin.bias.copy_(torch.tensor([1.0, -1.0]))
    x = windows()
    normal, statistics = revin.normalise(x)
    if not affine:
        torch.testing.assert_close(normal.mean(dim=1), torch.zeros(3, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(revin.restore(normal, statistics), x, atol=1e-4, rtol=1e-5)


def test_no_gradient_through_the_statistics() -> None:
    x = windows().requires_grad_()
    normal, (_, std) = RevIN().normalise(x)
    normal.sum().backward()
    expected = (1 / std).expand_as(x)
    torch.testing.assert_close(x.grad, expected)


def test_nothing_is_remembered_between_calls() -> None:
    revin = RevIN()
    first, kept = revin.normalise(windows())
    revin.normalise(windows(scale=100.0))
    torch.testing.assert_close(revin.restore(first, kept), windows(), atol=1e-4, rtol=1e-5)
    assert not revin.state_dict()


def test_constant_window_stays_finite() -> None:
    normal, _ = RevIN().normalise(torch.full((1, 20, 2), 3.0))
    assert torch.equal(normal, torch.zeros(1, 20, 2))


def test_half_width_input_has_full_width_statistics() -> None:
    x = windows(scale=100.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, (mean, std) = RevIN().normalise(x)
    assert mean.dtype == std.dtype == torch.float32
    torch.testing.assert_close((mean, std), RevIN().normalise(x)[1])
    assert RevIN().normalise(x.bfloat16())[1][0].dtype == torch.bfloat16


def test_autocast_is_off_inside_and_on_again_after() -> None:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with full_precision(x):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16


@given(st.integers(1, 60), st.integers(0, 14).map(lambda n: 2 * n + 1))
def test_against_numpy_also_when_the_padding_exceeds_the_length(length: int, kernel: int) -> None:
    x = torch.randn(2, 3, length, generator=torch.Generator().manual_seed(length))
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (kernel // 2, kernel // 2)), mode="edge")
    expected = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=-1).mean(axis=-1)
    np.testing.assert_allclose(MovingAverage(kernel)(x), expected, atol=1e-5)


def test_even_kernel_is_refused() -> None:
    with pytest.raises(ArgumentError, match="odd kernel"):
        MovingAverage(24)


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
