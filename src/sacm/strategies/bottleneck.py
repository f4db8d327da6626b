"""A Gaussian information bottleneck on one representation of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.discover import collect_names, match_modules
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.strategies.site_layers import PlacedRun, SiteLayer, find_dropouts, place_layers

_FIRST_LOG_VARIANCE = -4.0
_BOUND = 10.0  # of logarithms of variances


class BottleneckLayer(SiteLayer):
    """Noise around the representation, of a variance that a linear layer reads from it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.log_variance = nn.Linear(width, width)
        nn.init.zeros_(self.log_variance.weight)
        nn.init.constant_(self.log_variance.bias, _FIRST_LOG_VARIANCE)
        self.divergence: Tensor | None = None

    def forward(self, h: Tensor) -> Tensor:
        """Draw from `N(h, variance(h))` and note the divergence from `N(0, 1)`."""
        log_variance = self.log_variance(h).clamp(-_BOUND, _BOUND)
        self.divergence = normal_divergence(h, log_variance).sum(dim=-1).mean()
        return h + (0.5 * log_variance).exp() * torch.randn_like(h)

    def penalty(self) -> Tensor | None:
        """The divergence of the last forward, given once: it holds the graph of that forward."""
        divergence, self.divergence = self.divergence, None
        return divergence


def normal_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """`KL(N(mean, variance) || N(0, 1))`, entry by entry."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)


@register("bottleneck")
@dataclass(frozen=True)
class Bottleneck(Strategy):
    """Hold one representation close to a standard normal distribution, with noise around it.

    Source: A. Alemi, I. Fischer, J. Dillon and K. Murphy, Deep variational information bottleneck,
    ICLR 2017, arXiv:1612.00410; for forecasting as in RSTIB and other networks with a prior.

    beta: Weight of the divergence in the loss.
    at: Name or glob of the module whose output it is; by default the last dropout of the network
        whose activation is not the answer itself.
    """

    beta: float = 0.001
    at: str = ""

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ArgumentError(f"bottleneck(beta=…) must be positive, got {self.beta}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Find the representation and its width on one batch, and put the bottleneck there."""
        if self.at:
            hosts = match_modules(collect_names(model), [self.at], "bottleneck(at=…)")
        else:
            hosts = list(find_dropouts(model, self.name).values())
        seen, answer = watch(model, hosts, next(iter(context.train)))
        if not self.at:
            usable = [host for host, shape in seen.items() if shape.numel() != answer.numel()]
            seen = {host: seen[host] for host in usable[-1:]}
        if not seen:
            raise ArgumentError(
                "bottleneck found no representation of its own: name a module with at=…."
            )
        layers = place_layers(
            model, list(seen), lambda host: BottleneckLayer(seen[host][-1]), self.name
        )
        return PlacedRun(layers, self.beta)


@torch.no_grad()
def watch(
    model: nn.Module, hosts: list[nn.Module], batch: Any
) -> tuple[dict[nn.Module, torch.Size], torch.Size]:
    """Shapes of what the hosts give for a batch, in the order of their calls, and of the answer."""
    seen: dict[nn.Module, torch.Size] = {}

    def note(module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            seen[module] = output.shape

    handles = [host.register_forward_hook(note) for host in hosts]
    device = next(model.parameters()).device
    beside = getattr(batch, "beside", ())  # the calendar and covariates of a forecast
    extra = [None if one is None else one.to(device) for one in beside]
    training = model.training
    try:
        model.eval()
        with torch.random.fork_rng(devices=[]):
            answer = model(batch.x.to(device), *extra)
    finally:
        model.train(training)
        for handle in handles:
            handle.remove()
    return seen, answer.shape if isinstance(answer, Tensor) else torch.Size()
