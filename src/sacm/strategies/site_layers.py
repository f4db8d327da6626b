"""Layers of a strategy's own at the dropout sites of a network; they act in training alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.discover import discover
from sacm.inject.sites import ADAPTIVE, ORIGINAL, SITE_LAYERS
from sacm.strategies.base import Loader, StrategyRun, TrainingStep


class SiteLayer(nn.Module, ABC):
    """What acts at one site: activations of any shape in, the same shape out."""

    @abstractmethod
    def forward(self, h: Tensor) -> Tensor:
        """Change an activation in training."""

    @abstractmethod
    def penalty(self) -> Tensor | None:
        """What the last forward adds to the loss; None before the first."""


class SiteHook:
    """A forward hook that passes a module's output through a layer, in training."""

    def __init__(self, layer: SiteLayer) -> None:
        self.layer = layer

    def __call__(self, module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        changed: Tensor | None = self.layer(output) if module.training else None
        return changed


def find_dropouts(model: nn.Module, strategy: str) -> dict[str, nn.Module]:
    """The dropout modules on trainable paths by their names.

    Raises:
        ArgumentError: There are none.
    """
    found = {
        site.name: module
        for module, site in discover(model, []).items()
        if (site.adaptive and type(module) in ADAPTIVE) or type(module) in ORIGINAL
    }
    if not found:
        raise ArgumentError(
            f"{strategy} works on the dropout modules of a network, and {type(model).__name__} "
            "has none."
        )
    return found


def place_layers(
    model: nn.Module,
    hosts: Sequence[nn.Module],
    make: Callable[[nn.Module], SiteLayer],
    strategy: str,
) -> list[SiteLayer]:
    """Put a layer after each host.

    The layers become a child of the model, so that optimizers see their parameters; stripped
    checkpoints are those of the raw network.
    """
    device = next(model.parameters()).device
    layers = []
    for host in hosts:
        layer = make(host).to(device)
        host.register_forward_hook(SiteHook(layer))
        layers.append(layer)
    if not hasattr(model, SITE_LAYERS):
        model.add_module(SITE_LAYERS, nn.ModuleDict())
    model.get_submodule(SITE_LAYERS).add_module(strategy, nn.ModuleList(layers))
    return layers


def count_in_pass(batches: Loader) -> int:
    """How many windows a loader gives in one pass."""
    return sum(len(batch.x) for batch in batches)


class PlacedRun(StrategyRun):
    """Layers at work: their parameters carry no weight decay, their penalties join the loss."""

    def __init__(self, layers: Sequence[SiteLayer], weight: float) -> None:
        self.layers, self.weight = list(layers), weight

    def scalars(self) -> list[nn.Parameter]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def extra_loss(self, step: TrainingStep, answer: Tensor | None) -> Tensor | None:
        terms = [term for layer in self.layers if (term := layer.penalty()) is not None]
        return self.weight * torch.stack(terms).sum() if terms else None
