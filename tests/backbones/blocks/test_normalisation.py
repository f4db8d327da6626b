from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.backbones.blocks.normalisation import RevIN, instance_statistics


def windows(scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return scale * (torch.randn(3, 20, 2, generator=generator) + 5)


def test_statistics_are_numpy_population_ones() -> None:
    x = windows()
    mean, std = instance_statistics(x)
    np.testing.assert_allclose(mean, x.numpy().mean(axis=1, keepdims=True), rtol=1e-5)
    expected = np.sqrt(x.numpy().var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(std, expected, rtol=1e-5)


@pytest.mark.parametrize("affine", [False, True])
def test_restore_undoes_normalise(affine: bool) -> None:
    revin = RevIN(2, affine=affine)
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
    normal, statistics = RevIN(2).normalise(x)
    normal.sum().backward()
    expected = (1 / statistics.std).expand_as(x)
    torch.testing.assert_close(x.grad, expected)


def test_nothing_is_remembered_between_calls() -> None:
    revin = RevIN(2)
    first, kept = revin.normalise(windows())
    revin.normalise(windows(scale=100.0))
    torch.testing.assert_close(revin.restore(first, kept), windows(), atol=1e-4, rtol=1e-5)
    assert not revin.state_dict()


def test_constant_window_stays_finite() -> None:
    normal, _ = RevIN(2).normalise(torch.full((1, 20, 2), 3.0))
    assert torch.equal(normal, torch.zeros(1, 20, 2))


def test_half_width_input_has_full_width_statistics() -> None:
    x = windows(scale=100.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mean, std = instance_statistics(x)
    assert mean.dtype == std.dtype == torch.float32
    torch.testing.assert_close((mean, std), tuple(instance_statistics(x)))
    assert instance_statistics(x.bfloat16()).mean.dtype == torch.bfloat16
