"""An adapter that makes any forecasting network forecast quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from sacm.backbones.adapter import NetworkAdapter
from sacm.backbones.base import ForecastNetwork
from sacm.errors import ArgumentError

HIDDEN = 64


class QuantileAdapter(NetworkAdapter):
    """A forecasting network that gives quantiles `[B, H, C, Q]`, none of which cross.

    The network's own forecast is the median. A small network of the window, shared by all channels,
    adds what lies between neighbouring quantiles, which is positive. It sees the window around its
    mean and the sizes of its steps, by which noise that comes and goes shows.

    Args:
        network: The network.
        levels: The Q levels: ascending, symmetric, with 0.5 in the middle; see `complete_levels`.
    """

    def __init__(self, network: ForecastNetwork, levels: Sequence[float]) -> None:
        super().__init__(network)
        self.levels = complete_levels(levels)
        self.gaps = len(self.levels) - 1
        self.spread = nn.Sequential(
            nn.Linear(2 * self.input_len, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, self.horizon * self.gaps),
        )

    def forward(self, x: Tensor, *beside: Tensor | None) -> Tensor:
        """Forecast quantiles `[B, H, C, Q]`, ascending; `beside` is what the network takes."""
        median: Tensor = self.network(x, *beside)
        gaps = self._gaps(x)  # [B, H, C, Q - 1]
        half = self.gaps // 2
        below = gaps[..., :half].flip(-1).cumsum(dim=-1).flip(-1)
        above = gaps[..., half:].cumsum(dim=-1)
        middle = median.unsqueeze(-1)
        return torch.cat([middle - below, middle, middle + above], dim=-1)

    def _gaps(self, x: Tensor) -> Tensor:
        """What lies between neighbouring quantiles."""
        windows = x.transpose(1, 2)  # [B, C, L]
        steps = functional.pad(windows.diff(dim=-1).abs(), (1, 0))
        seen = torch.cat([windows - windows.mean(dim=-1, keepdim=True), steps], dim=-1)
        found: Tensor = self.spread(seen)  # [B, C, H (Q - 1)]
        shaped = found.unflatten(-1, (self.horizon, self.gaps)).transpose(1, 2)
        return functional.softplus(shaped)


def complete_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Levels in order, with the median and, for each level, the one on the other side.

    Raises:
        ArgumentError: A level is not between 0 and 1.

    Example:
        >>> complete_levels([0.9])
        (0.1, 0.5, 0.9)
    """
    if not levels or not all(0 < level < 1 for level in levels):
        raise ArgumentError(f"quantiles must lie between 0 and 1, got {list(levels)}.")
    both = [*levels, *(1 - level for level in levels), 0.5]
    found = tuple(sorted({round(level, 10) for level in both}))
    return found if len(found) > 1 else (0.25, 0.5, 0.75)


def take_median(answer: Tensor) -> Tensor:
    """The forecast `[B, H, C]` of a network: its answer, or the median of its quantiles."""
    return answer if answer.dim() == 3 else answer[..., answer.shape[-1] // 2]


def pinball(quantiles: Tensor, target: Tensor, levels: Sequence[float]) -> Tensor:
    """Pinball loss `[B, H, C]` of quantiles `[B, H, C, Q]`, the mean over levels, times two.

    With the median alone it is the absolute error.
    """
    error = target.unsqueeze(-1) - quantiles
    level = torch.as_tensor(levels, dtype=error.dtype, device=error.device)
    return 2 * torch.maximum(level * error, (level - 1) * error).mean(dim=-1)


def find_levels(model: nn.Module) -> tuple[float, ...] | None:
    """The levels of a network that forecasts quantiles, however it is wrapped; None if it does not.

    Members of a committee share theirs.
    """
    parts = (part for part in model.modules() if isinstance(part, QuantileAdapter))
    found = next(parts, None)
    return None if found is None else found.levels


def at_level(answer: Tensor, levels: Sequence[float] | None, level: float | None) -> Tensor:
    """The forecast `[B, H, C]` of one quantile, between two that the network gives or the nearest.

    A network without quantiles, or no level, gives its forecast.
    """
    if levels is None or level is None:
        return take_median(answer)
    place = min(max(level, levels[0]), levels[-1])
    above = next(i for i, known in enumerate(levels) if known >= place - 1e-9)
    if above == 0:
        return answer[..., 0]
    share = (place - levels[above - 1]) / (levels[above] - levels[above - 1])
    return torch.lerp(answer[..., above - 1], answer[..., above], share)
