"""Scorers by name: what `sacm(scorer=…)` puts in place of the spectral score."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from sacm.core.config import SACMConfig
from sacm.core.scorer import SpectralScorer
from sacm.registry import Registry

ScorerFactory = Callable[[int, SACMConfig], nn.Module]
Factory = TypeVar("Factory", bound=ScorerFactory)
SCORERS: Registry[ScorerFactory] = Registry("scorer")
DEFAULT = "spectral"


def register(name: str) -> Callable[[Factory], Factory]:
    """Give a decorator that makes a scorer available as `sacm(scorer=NAME)`.

    Args:
        name: The name of the scorer.

    Returns:
        A decorator for a factory `(channels, config) -> module`, a function or a module class.
        The module maps windows `[B, L, C]` to scores `[B]`; the higher the score of a window
        within its batch, the higher its dropout rate. `sacm.testing.check_scorer` checks one.

    Raises:
        ArgumentError: If the name is taken.

    Example:
        >>> import torch
        >>> from sacm.registry import temporary_entries
        >>> from sacm.strategies import canonical, scorers
        >>> class Roughness(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.diff(dim=1).abs().mean(dim=(1, 2))
        >>> with temporary_entries():
        ...     @scorers.register("roughness")
        ...     def roughness(channels, config):
        ...         return Roughness()
        ...     canonical("sacm(scorer=roughness)")
        'sacm(scorer=roughness)'
    """
    return SCORERS.register(name)


def names() -> list[str]:
    """List the registered scorers, plug-ins included."""
    return SCORERS.names()


@register(DEFAULT)
def spectral(channels: int, config: SACMConfig) -> nn.Module:
    """Make the method's own scorer: the share of a window that its sparse spectrum leaves out."""
    return SpectralScorer(channels, config)
