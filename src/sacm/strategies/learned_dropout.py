"""Concrete and variational dropout: every site learns how much it drops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from sacm.errors import ArgumentError
from sacm.strategies.base import SETS_RATES, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.strategies.site_layers import (
    PlacedRun,
    SiteLayer,
    count_in_pass,
    find_dropouts,
    place_layers,
)

_TEMPERATURE = 0.1
_MOLCHANOV = (0.63576, 1.87320, 1.48695)  # constants of the published approximation


class ConcreteLayer(SiteLayer):
    """Dropout by a smooth mask, whose rate `p = sigmoid(logit)` is learnt."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(math.log(rate / (1 - rate))))
        self.width: int | None = None

    def forward(self, h: Tensor) -> Tensor:
        """Multiply by `(1 - z) / (1 - p)`, `z` a relaxed Bernoulli of rate p."""
        self.width = h.shape[-1]
        tiny = torch.finfo(h.dtype).eps
        u = torch.rand_like(h).clamp(tiny, 1 - tiny)
        dropped = ((self.logit + u.log() - (1 - u).log()) / _TEMPERATURE).sigmoid()
        return h * (1 - dropped) / self.logit.neg().sigmoid()

    def penalty(self) -> Tensor | None:
        """Minus the entropy of the rate, for every feature."""
        if self.width is None:
            return None
        p, q = self.logit.sigmoid(), self.logit.neg().sigmoid()
        return self.width * (p * p.log() + q * q.log())


class GaussianLayer(SiteLayer):
    """Multiplicative Gaussian noise of variance `a = exp(log_variance)`, which is learnt."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.log_variance = nn.Parameter(torch.tensor(math.log(rate / (1 - rate))))
        self.width: int | None = None

    def forward(self, h: Tensor) -> Tensor:
        """Multiply by `1 + sqrt(a) e`."""
        self.width = h.shape[-1]
        return h * (1 + (0.5 * self.log_variance).exp() * torch.randn_like(h))

    def penalty(self) -> Tensor | None:
        """The divergence from the log-uniform prior, for every feature."""
        return (
            None if self.width is None else self.width * log_uniform_divergence(self.log_variance)
        )


def log_uniform_divergence(log_variance: Tensor) -> Tensor:
    """`KL(N(w, a w²) || log-uniform)` by the approximation of Molchanov and others, up to 0."""
    k1, k2, k3 = _MOLCHANOV
    tail = 0.5 * torch.nn.functional.softplus(-log_variance)  # ln(1 + 1 / a) / 2
    return k1 - k1 * (k2 + k3 * log_variance).sigmoid() + tail


@dataclass(frozen=True)
class _LearnedDropout(Strategy):
    """What the two have in common."""

    roles: ClassVar[tuple[str, ...]] = (SETS_RATES,)

    rate: float = 0.1
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ArgumentError(f"{self.name}(rate=…) must be in (0, 1), got {self.rate}.")
        if not self.weight >= 0:
            raise ArgumentError(f"{self.name}(weight=…) must be 0 or more, got {self.weight}.")

    def place(
        self,
        model: nn.Module,
        context: TrainingContext,
        make: Callable[[nn.Module], SiteLayer],
    ) -> StrategyRun:
        """Put a layer in place of every dropout of the model."""
        hosts = list(find_dropouts(model, self.name).values())
        for host in hosts:
            assert isinstance(host, _DropoutNd)
            host.p = 0.0
        layers = place_layers(model, hosts, make, self.name)
        return PlacedRun(layers, self.weight / max(1, count_in_pass(context.train)))


@register("concrete")
@dataclass(frozen=True)
class ConcreteDropout(_LearnedDropout):
    """Learn the dropout rate of every site through a smooth mask.

    Source: Y. Gal, J. Hron and A. Kendall, Concrete dropout, NeurIPS 2017, arXiv:1705.07832.

    rate: The rate that every site begins with, in (0, 1).
    weight: Weight of the entropy of the rates in the loss; 1 is that of the derivation.
    """

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Put a smooth dropout at every site."""
        return self.place(model, context, lambda host: ConcreteLayer(self.rate))


@register("variational")
@dataclass(frozen=True)
class VariationalDropout(_LearnedDropout):
    """Learn the Gaussian noise of every site.

    Source: D. Kingma, T. Salimans and M. Welling, Variational dropout and the local
    reparameterization trick, NeurIPS 2015, arXiv:1506.02557; divergence by D. Molchanov, A. Ashukha
    and D. Vetrov, ICML 2017, arXiv:1701.05369.

    rate: The rate that every site begins with, in (0, 1); its noise has the variance p / (1 - p).
    weight: Weight of the divergence in the loss; 1 is that of the derivation.
    """

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Put Gaussian noise at every site."""
        return self.place(model, context, lambda host: GaussianLayer(self.rate))
