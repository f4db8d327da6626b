"""A model of another library with a batch for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

BATCH, LENGTH, CHANNELS = 5, 32, 3


@dataclass
class Case:
    """A model, the arguments of one forward with `BATCH` windows, and where the window is."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    channels: int = CHANNELS
    input_arg: Any = 0
    window_layout: Literal["BLC", "BCL"] = "BLC"

    def run(self, order: Tensor | None = None) -> Any:
        """Call the model, with the windows in another order if one is given."""
        if order is None:
            return self.model(*self.args, **self.kwargs)
        args, kwargs = tree_map(lambda leaf: _reorder(leaf, order), (self.args, self.kwargs))
        return self.model(*args, **kwargs)


@dataclass(frozen=True)
class Configuration:
    """A way to make a case, under a name."""

    library: str
    name: str
    make: Callable[[], Case]
    coverage: Literal["modules", "all"] = "all"


Configurations = Iterator[Configuration]


def make_windows(
    channels: int = CHANNELS, length: int = LENGTH, *, layout: str = "BLC", seed: int = 0
) -> Tensor:
    """Sines `[B, L, C]` with more and more noise, so that every window has a rate of its own."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[None, :, None]
    phase = 6.28 * torch.rand(BATCH, 1, channels, generator=generator)
    noise = torch.randn(BATCH, length, channels, generator=generator)
    level = torch.linspace(0.05, 1.0, BATCH)[:, None, None]
    window = torch.sin(time * 0.7 + phase) + level * noise
    return window.transpose(1, 2).contiguous() if layout == "BCL" else window


class AsImage(nn.Module):
    """Feeds windows `[B, side * side, C]` to a network for images."""

    def __init__(self, network: nn.Module, side: int) -> None:
        super().__init__()
        self.network, self.side = network, side

    def forward(self, window: Tensor) -> Any:
        return self.network(window.transpose(1, 2).unflatten(2, (self.side, self.side)))


def _reorder(leaf: Any, order: Tensor) -> Any:
    """Reorder a tensor that has one entry for each window."""
    if isinstance(leaf, Tensor) and leaf.dim() and leaf.shape[0] == BATCH:
        return leaf[order]
    return leaf
