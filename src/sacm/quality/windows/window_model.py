"""A Gaussian of clean windows with few directions, and what it expects of unknown entries.

A window is `x = mean + basis @ f + residual` with `f ~ N(0, I)` and residuals of variance `spread`
in each channel. Residuals are autocorrelated, so each entry counts as only `ETA` of an observation.
With every entry scaled by the root of its precision and the directions turned so that a complete
window needs no solving, the fit of a complete window `y` is `U (Uᵀ y)`. Entries of weight `d < 1`
are filled with the fit itself: `g = Uᵀ (d y + (1 - d) U g)`. Both ways to solve this take matrix
products only: conjugate gradients, the cheaper, and in graphs, where each step costs nodes, the
series `(I - N)⁻¹ = (I + N)(I + N²)(I + N⁴) …`, which needs few.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sacm.quality.windows.parts import Part, tracing

DIRECTIONS = 64
ETA = 0.2
ITERATIONS = 32
DOUBLINGS = 12
SMALLEST_SPREAD = 1e-4
LARGEST_CARRY = 0.99


class WindowModel(Part):
    """Low-rank Gaussian over windows [B, L, C] of z-scores.

    Buffers: mean [C]; basis [L * C, K], the `U` above; root [C], the square root of an entry's
    precision; spread [C], variance of the residual; carry [C], its lag-1 correlation.
    """

    mean: Tensor
    basis: Tensor
    root: Tensor
    spread: Tensor
    carry: Tensor

    def fit(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """The expected window given the entries of `x`, each trusted by its weight.

        Args:
            x: z-scores [B, L, C].
            weight: [B, L, C] between 0 (unknown) and 1; None trusts all.

        Returns:
            The expected values [B, L, C].
        """
        scaled = ((x - self.mean) * self.root).flatten(1)
        if weight is None:
            factors = scaled @ self.basis
        else:
            flat = weight.flatten(1)
            solve = self._expand if tracing() else self._solve
            factors = solve((flat * scaled) @ self.basis, 1 - flat)
        return self.mean + (factors @ self.basis.T).view_as(x) / self.root

    def _solve(self, right: Tensor, doubt: Tensor) -> Tensor:
        """Conjugate gradients for `(I - Uᵀ diag(doubt) U) g = right`, [B, K]."""
        tiny = torch.finfo(right.dtype).tiny
        back = self.basis.T.contiguous()
        factors, residual, direction = torch.zeros_like(right), right, right
        square = (residual * residual).sum(1, keepdim=True)
        goal = 1e-10 * square
        for iteration in range(ITERATIONS):
            image = direction - (doubt * (direction @ back)) @ self.basis
            step = square / (direction * image).sum(1, keepdim=True).clamp_min(tiny)
            factors = factors + step * direction
            residual = residual - step * image
            before, square = square, (residual * residual).sum(1, keepdim=True)
            direction = residual + square / before.clamp_min(tiny) * direction
            if iteration % 4 == 3 and bool((square <= goal).all()):
                break
        return factors

    def _expand(self, right: Tensor, doubt: Tensor) -> Tensor:
        """The same by a series whose terms double with every step."""
        power = (self.basis.T * doubt.unsqueeze(1)) @ self.basis  # [B, K, K]
        factors = right.unsqueeze(-1)
        for _ in range(DOUBLINGS):
            factors = factors + power @ factors
            power = power @ power
        return factors.squeeze(-1)


class Directions(NamedTuple):
    """What clean windows [N, L, C] of z-scores have in common.

    mean, spread, carry: as in `WindowModel`. loadings: the directions [L * C, K], each as long as
    the deviation along it.
    """

    mean: Tensor
    loadings: Tensor
    spread: Tensor
    carry: Tensor

    def model(self, *, free_level: float = 0.0) -> WindowModel:
        """The Gaussian of these windows.

        Args:
            free_level: deviation by which the level of each channel may differ from all that the
                windows show, by itself; 0 for no more than they show.
        """
        channels = len(self.mean)
        length = len(self.loadings) // channels
        root = (ETA / self.spread).sqrt()
        loadings = self.loadings
        if free_level:
            levels = free_level * torch.eye(channels, dtype=loadings.dtype).repeat(length, 1)
            loadings = torch.cat([loadings, levels], 1)
        basis = _turn(loadings, root.repeat(length))
        return WindowModel(
            mean=self.mean, basis=basis, root=root, spread=self.spread, carry=self.carry
        )


def learn_directions(windows: Tensor, directions: int = DIRECTIONS, seed: int = 0) -> Directions:
    """Learn from clean windows of z-scores [N, L, C]."""
    count, length, channels = windows.shape
    mean = windows.mean((0, 1))
    flat = (windows - mean).flatten(1)
    directions = max(1, min(directions, count - 1, length * channels))
    vectors, variances = leading_directions(flat, directions, seed)
    residual = (flat - (flat @ vectors) @ vectors.T).view_as(windows)
    power = residual.square().mean((0, 1))
    neighbours = (residual[:, 1:] * residual[:, :-1]).mean((0, 1))
    return Directions(
        mean=mean,
        loadings=vectors * variances.sqrt(),
        spread=power.clamp_min(SMALLEST_SPREAD),
        carry=(neighbours / power.clamp_min(1e-9)).clamp(1e-3, LARGEST_CARRY),
    )


def leading_directions(flat: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Leading eigenvectors [D, count] and eigenvalues [count] of the covariance of `flat` [N, D].

    Subspace iteration, so that windows of many channels cost no more than products of matrices.
    """
    generator = torch.Generator().manual_seed(seed)
    wide = min(count + 16, *flat.shape)
    start = torch.randn(flat.shape[1], wide, generator=generator, dtype=flat.dtype)
    space = torch.linalg.qr(start).Q
    for _ in range(8):
        space = torch.linalg.qr(flat.T @ (flat @ space)).Q
    inside = flat @ space
    values, turn = torch.linalg.eigh((inside.T @ inside / len(flat)).double())
    vectors = space @ turn.flip(1)[:, :count].to(flat.dtype)
    return vectors, values.flip(0)[:count].clamp_min(0).to(flat.dtype)


def _turn(loadings: Tensor, root: Tensor) -> Tensor:
    """Scale entries by `root` and turn directions so that a complete window needs no solving."""
    scaled = (loadings * root[:, None]).double()
    precision = torch.eye(scaled.shape[1], dtype=torch.float64) + scaled.T @ scaled
    factor = torch.linalg.cholesky(precision)
    turned = torch.linalg.solve_triangular(factor, scaled.T, upper=False)
    return turned.T.to(loadings.dtype).contiguous()
