"""Mappers by name: what `sacm(mapper=…)` puts in place of the map from scores to rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper
from sacm.registry import Registry

MapperFactory = Callable[[SACMConfig], nn.Module]
Factory = TypeVar("Factory", bound=MapperFactory)
MAPPERS: Registry[MapperFactory] = Registry("mapper")
DEFAULT = "tanh"


def register(name: str) -> Callable[[Factory], Factory]:
    """Give a decorator that makes a mapper available as `sacm(mapper=NAME)`.

    Args:
        name: The name of the mapper.

    Returns:
        A decorator for a factory `(config) -> module`, a function or a module class. The module
        is called with scores `[B]` and `reliable` `[B]` (bool, or None for all) and returns
        rates `[B]` in `[config.p_min, config.p_max]`.

    Raises:
        ArgumentError: If the name is taken.

    Example:
        >>> import torch
        >>> from sacm.registry import temporary_entries
        >>> from sacm.strategies import canonical, mappers
        >>> class Linear(torch.nn.Module):
        ...     def __init__(self, config):
        ...         super().__init__()
        ...         self.config = config
        ...     def forward(self, scores, reliable=None):
        ...         low, high = self.config.p_min, self.config.p_max
        ...         return low + (high - low) * scores.argsort().argsort() / len(scores)
        >>> with temporary_entries():
        ...     _ = mappers.register("rank")(Linear)
        ...     canonical("sacm(mapper=RANK)")
        'sacm(mapper=rank)'
    """
    return MAPPERS.register(name)


def names() -> list[str]:
    """List the registered mappers, plug-ins included."""
    return MAPPERS.names()


@register(DEFAULT)
def tanh(config: SACMConfig) -> nn.Module:
    """Make the method's own mapper: the tanh of the score's place in the batch's range."""
    return RateMapper(config)
