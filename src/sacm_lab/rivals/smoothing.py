"""Randomised smoothing: the mean answer for a window with noise on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.strategies.base import CHANGES_NETWORK, Strategy
from sacm_lab.rivals.committee import Ask, make_committee

_SEED = 0


@dataclass(frozen=True)
class Smoothing(Strategy):
    """Train with Gaussian noise on the windows, and average the answers for noisy copies.

    Source: J. Cohen, E. Rosenfeld and J. Z. Kolter, Certified adversarial robustness via randomized
    smoothing, ICML 2019, arXiv:1902.02918.

    sigma: Deviation of the noise, in training deviations of the channels.
    samples: How many noisy copies of a window are answered, 1 or more.
    """

    name: ClassVar[str] = "smoothing"
    roles: ClassVar[tuple[str, ...]] = (CHANGES_NETWORK,)

    sigma: float = 0.25
    samples: int = 16

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ArgumentError(f"smoothing(sigma=…) must be positive, got {self.sigma}.")
        if self.samples < 1:
            raise ArgumentError(f"smoothing(samples=…) must be 1 or more, got {self.samples}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """One network that answers for noisy copies."""
        return make_committee([make()], SmoothedAnswer(self.sigma, self.samples))

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Windows `[B, L, C]`, in training with noise."""
        return x + self.sigma * torch.randn_like(x) if training else x


@dataclass(frozen=True)
class SmoothedAnswer:
    """The rule: the mean over copies. All windows get the same noise, every time.

    So answers can be repeated, and do not depend on what else is in the batch.
    """

    sigma: float
    samples: int

    def __call__(self, ask: Ask, members: Sequence[Any], x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(_SEED)
        noise = torch.randn(self.samples, *x.shape[1:], generator=generator).to(x)
        answers = [ask(members[0], x + self.sigma * one) for one in noise]
        return torch.stack(answers).mean(dim=0)
