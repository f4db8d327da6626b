"""The window model against the textbook formula of a Gaussian posterior."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sacm.quality.windows.parts import tracing
from sacm.quality.windows.window_model import (
    ETA,
    WindowModel,
    leading_directions,
    learn_directions,
)
from tests.quality.windows.rows import LENGTH, broken_windows, guard, windows


def posterior(model: WindowModel, loadings: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Fit of one window [L, C] by solving the normal equations in float64."""
    precision = (weight * ETA / model.spread).flatten().double()
    w = loadings.double()
    a = torch.eye(w.shape[1], dtype=torch.float64) + w.T @ (precision[:, None] * w)
    f = torch.linalg.solve(a, w.T @ (precision * (x - model.mean).flatten().double()))
    return (model.mean.double() + (w @ f).view(x.shape)).float()


def data(free_level: float = 0.0) -> tuple[WindowModel, Tensor, Tensor]:
    """A model of a few directions, the loadings it was learnt with, and windows."""
    own = guard()
    z = (windows(every=5) - own.mean) / own.scale
    model = learn_directions(z, directions=12).model(free_level=free_level)
    vectors, variances = leading_directions((z - z.mean((0, 1))).flatten(1), 12, seed=0)
    loadings = vectors * variances.sqrt()
    if free_level:
        levels = [free_level * torch.eye(3)[c].repeat(LENGTH) for c in range(3)]
        loadings = torch.cat([loadings, torch.stack(levels, 1)], 1)
    return model, loadings, z


@pytest.mark.parametrize("free_level", [0.0, 2.0])
@pytest.mark.parametrize("case", ["whole", "gap", "noise", "nothing"])
def test_the_fit_is_the_gaussian_posterior(case: str, free_level: float) -> None:
    model, loadings, z = data(free_level)
    weight = torch.ones(LENGTH, 3)
    if case == "gap":
        weight[10:40, :2] = 0
    elif case == "noise":
        weight[:, 1] = 0.03
    elif case == "nothing":
        weight[:] = 0
    expected = posterior(model, loadings, z[3], weight)
    fitted = model.fit(z[3:4], weight.unsqueeze(0))[0]
    torch.testing.assert_close(fitted, expected, rtol=1e-3, atol=1e-3)
    if case == "whole":
        torch.testing.assert_close(model.fit(z[3:4])[0], expected, rtol=1e-3, atol=1e-3)


def test_both_solvers_agree() -> None:
    model, _, z = data()
    weight = torch.rand(len(z), LENGTH * 3, generator=torch.Generator().manual_seed(0)).round()
    weight[0] = 0
    right = (weight * z.flatten(1)) @ model.basis
    torch.testing.assert_close(
        model._solve(right, 1 - weight), model._expand(right, 1 - weight), rtol=1e-3, atol=1e-3
    )


def test_leading_directions_are_those_of_the_covariance() -> None:
    flat = (broken_windows()[5:] - guard().mean).flatten(1)
    flat = torch.cat([flat, windows(every=3).flatten(1) - guard().mean.repeat(LENGTH)])
    vectors, values = leading_directions(flat, 4, seed=1)
    exact, axes = torch.linalg.eigh(flat.T @ flat / len(flat))
    torch.testing.assert_close(values, exact.flip(0)[:4], rtol=1e-3, atol=1e-3)
    overlap = (vectors.T @ axes.flip(1)[:, :4]).square().sum()
    torch.testing.assert_close(overlap, torch.tensor(4.0), rtol=1e-3, atol=1e-3)


def test_nothing_is_traced_in_eager_mode() -> None:
    assert not tracing()
