"""Adapters around a forecasting network: one gives it covariates, one makes it give quantiles."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import Backbone, ForecastNetwork
from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout

HIDDEN = 64  # units of an adapter's own network


class NetworkAdapter(ForecastNetwork):
    """A forecasting network around another one, of the same lengths and channels."""

    def __init__(self, network: ForecastNetwork) -> None:
        super().__init__(
            input_len=network.input_len, horizon=network.horizon, channels=network.channels
        )
        self.network = network
        self.sacm_layouts = prefix_layouts(network, "network")

    @property
    def prepares(self) -> bool:
        return self.network.prepares

    def prepare(self, train_x: Tensor) -> None:
        self.network.prepare(train_x)

    def set_epoch(self, epoch: int) -> None:
        self.network.set_epoch(epoch)

    def auxiliary_loss(self) -> Tensor:
        return self.network.auxiliary_loss()


def prefix_layouts(network: Backbone, prefix: str) -> dict[str, SiteLayout]:
    """The layouts that a network states, by the names of its sites in a larger one."""
    return {f"{prefix}.{name}": layout for name, layout in network.sacm_layouts.items()}


class CovariateAdapter(NetworkAdapter):
    """A forecasting network with covariates: `[B, L, C]` and `[B, L + H, K]` to `[B, H, C]`.

    A gated projection of the covariates is added to the input windows, and a small network of the
    known-future ones to the forecast. Both begin at zero, so a fresh adapter forecasts what its
    network does. A network whose `forward` takes `covariates` gets them scaled, and nothing is
    added.

    Args:
        network: The network.
        past: How many of the K covariates, the first, are unknown for the steps to forecast.
        mean: What is subtracted from each covariate, `[K]`.
        std: What each is then divided by, `[K]`.
    """

    mean: Tensor
    std: Tensor
    known: Tensor

    def __init__(
        self, network: ForecastNetwork, *, past: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__(network)
        count = len(mean)
        if len(std) != count or not 0 <= past <= count or count < 1:
            raise ArgumentError(
                f"{count} means, {len(std)} deviations and {past} past covariates do not fit."
            )
        self.past, self.count = past, count
        self.native = takes_covariates(type(network))
        known = torch.ones(self.input_len + self.horizon, count)
        known[self.input_len :, :past] = 0
        for name, values in {"mean": mean, "std": std, "known": known}.items():
            self.register_buffer(name, torch.as_tensor(values).float(), persistent=False)
        if not self.native:
            self._add_layers()

    def _add_layers(self) -> None:
        """The layers of the adapter's own; what they add is zero until they have been trained."""
        self.project = nn.Linear(self.count, 2 * self.channels)
        self.strength = nn.Parameter(torch.zeros(self.channels))
        ahead = self.count - self.past
        self.head = None
        if ahead:
            last = nn.Linear(HIDDEN, self.channels)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.head = nn.Sequential(nn.Linear(ahead, HIDDEN), nn.GELU(), last)

    def forward(
        self, x: Tensor, stamps: Tensor | None = None, covariates: Tensor | None = None
    ) -> Tensor:
        """Forecast `[B, H, C]`.

        Args:
            x: Scaled windows `[B, L, C]`.
            stamps: Calendar positions `[B, L + H, 4]`, for networks with calendar tables.
            covariates: `[B, L + H, K]` in raw units; past ones do not count after step L.
        """
        self.check_window(x)
        scaled = self._scale(covariates, len(x)).to(x.dtype)
        if self.native:
            native: Tensor = self.network(x, stamps, scaled)
            return native
        content, gate = self.project(scaled[:, : self.input_len]).chunk(2, dim=-1)  # [B, L, C]
        x = x + self.strength * content * gate.sigmoid()
        answer: Tensor = self.network(x) if stamps is None else self.network(x, stamps)
        if self.head is None:
            return answer
        effect: Tensor = self.head(scaled[:, self.input_len :, self.past :])  # [B, H, C]
        return answer + effect

    def _scale(self, covariates: Tensor | None, batch: int) -> Tensor:
        """Covariates as z-scores, 0 where they are not known."""
        expected = [batch, self.input_len + self.horizon, self.count]
        if covariates is None or list(covariates.shape) != expected:
            found = "none" if covariates is None else list(covariates.shape)
            raise ArgumentError(f"the network needs covariates {expected}, got {found}.")
        return (covariates - self.mean) / self.std * self.known


def takes_covariates(model: type[Backbone]) -> bool:
    """Whether the `forward` of a network takes covariates by itself."""
    return "covariates" in inspect.signature(model.forward).parameters


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
        steps = F.pad(windows.diff(dim=-1).abs(), (1, 0))
        seen = torch.cat([windows - windows.mean(dim=-1, keepdim=True), steps], dim=-1)
        found: Tensor = self.spread(seen)  # [B, C, H (Q - 1)]
        shaped = found.unflatten(-1, (self.horizon, self.gaps)).transpose(1, 2)
        return F.softplus(shaped)


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
