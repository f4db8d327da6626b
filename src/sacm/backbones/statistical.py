"""Forecasts without gradients: seasonal naive, exponential smoothing, Theta, linear regression.

All of them are networks over windows `[B, L, C]` like any other, so that runs, intervals, export
and pages work with them. A window is all that they see: exponential smoothing and Theta fit their
smoothing to each window, for every channel by itself. `MeanForecaster` is the weighted mean of
several networks, each of which sees the last rows that it was built for.

References: Hyndman et al., "A state space framework for automatic forecasting using exponential
smoothing methods", 2002; Hyndman and Billah, "Unmasking the Theta method", 2003.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from sacm.backbones.adapters import NetworkAdapter
from sacm.backbones.base import ForecastNetwork

_LEVELS = (0.05, 0.15, 0.35, 0.65, 0.95)  # smoothing of the level
_TRENDS = ((0.03, 1.0), (0.2, 1.0), (0.6, 1.0), (0.03, 0.9), (0.2, 0.9), (0.9, 0.9))  # and damping
_SEASONS = (0.03, 0.3)  # smoothing of the season
_SETTLING = 6  # steps that decide on nothing, at least
_AT_ONCE = 1024  # windows of single channels that are smoothed together


@dataclass(frozen=True)
class Logarithms:
    """What turns scaled values of a positive channel into logarithms.

    Attributes:
        offset: Mean over deviation of each channel `[C]`: scaled values plus it are proportional to
            the values as they came.
        lowest: The least such value in the training rows `[C]`.
        highest: The largest.
    """

    offset: Tensor
    lowest: Tensor
    highest: Tensor


class StatisticalForecaster(ForecastNetwork):
    """A forecast of every channel by itself, of its values or of their logarithms.

    Args:
        input_len: Steps L of a window.
        horizon: Steps H to forecast.
        channels: Channels C.
        season: Steps of a season; 1 for none.
        log: Whether logarithms are forecast; `use_logarithms` then says how to take them.
    """

    offset: Tensor
    lowest: Tensor
    highest: Tensor

    def __init__(
        self, *, input_len: int, horizon: int, channels: int, season: int = 1, log: bool = False
    ) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        # Two seasons and a few rows more are needed to tell a season from a trend.
        self.season = season if input_len >= 2 * season + 2 else 1
        self.log = log
        if log:
            for name in ("offset", "lowest", "highest"):
                self.register_buffer(name, torch.ones(channels))

    def use_logarithms(self, logarithms: Logarithms) -> None:
        """Take logarithms in this way."""
        self.offset, self.lowest = logarithms.offset, logarithms.lowest
        self.highest = logarithms.highest

    def transform(self, x: Tensor) -> Tensor:
        """Values `[B, L, C]` as they are extrapolated."""
        return torch.log((x + self.offset).maximum(self.lowest / 10)) if self.log else x

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        """Forecast `[B, H, C]`."""
        values = self.transform(x).transpose(1, 2)  # [B, C, L]
        level = values[..., -1:]
        spread = values.std(dim=-1, keepdim=True, correction=0).clamp_min(1e-6)
        flat = ((values - level) / spread).flatten(0, 1)  # [B C, L]
        ahead = self.extrapolate(flat)
        # A trend must not run away: forecasts leave the range of the window by that range at most.
        low, high = flat.amin(dim=1, keepdim=True), flat.amax(dim=1, keepdim=True)
        ahead = ahead.maximum(2 * low - high).minimum(2 * high - low)
        ahead = ahead.unflatten(0, values.shape[:2]) * spread + level
        ahead = ahead.transpose(1, 2)  # [B, H, C]
        if not self.log:
            return ahead
        return torch.exp(ahead.minimum(torch.log(10 * self.highest))) - self.offset

    def extrapolate(self, windows: Tensor) -> Tensor:
        """Continue windows `[N, L]` of single channels, which end with 0, by `[N, H]`."""
        raise NotImplementedError


class SeasonalNaive(StatisticalForecaster):
    """Repeats the last season, or the last value of data without one."""

    def extrapolate(self, windows: Tensor) -> Tensor:
        steps = torch.arange(self.horizon, device=windows.device) % self.season
        return windows[:, windows.shape[1] - self.season + steps]


class LinearForecaster(StatisticalForecaster):
    """A linear map of the window, the same for all channels; `weight` `[H, L]` is fitted once."""

    weight: Tensor

    def __init__(
        self, *, input_len: int, horizon: int, channels: int, season: int = 1, log: bool = False
    ) -> None:
        super().__init__(
            input_len=input_len, horizon=horizon, channels=channels, season=season, log=log
        )
        self.register_buffer("weight", torch.zeros(horizon, input_len))

    def extrapolate(self, windows: Tensor) -> Tensor:
        return windows @ self.weight.T


class SmoothingForecaster(StatisticalForecaster):
    """Exponential smoothing, additive, with or without trend, damping and season.

    Every window is smoothed with a grid of constants; the forecast is the mean over the grid, each
    by its Akaike weight, so that the window decides on trend, season and memory.
    """

    alpha: Tensor
    beta: Tensor
    phi: Tensor
    gamma: Tensor
    drift: Tensor
    plain: Tensor
    seasonal: Tensor

    def __init__(
        self, *, input_len: int, horizon: int, channels: int, season: int = 1, log: bool = False
    ) -> None:
        super().__init__(
            input_len=input_len, horizon=horizon, channels=channels, season=season, log=log
        )
        for name, column in zip(
            ("alpha", "beta", "phi", "gamma", "drift"), self.grid(), strict=True
        ):
            self.register_buffer(name, column, persistent=False)
        for name, period in (("plain", 1), ("seasonal", self.season)):
            self.register_buffer(name, line_and_season(input_len, period), persistent=False)

    def grid(self) -> Tensor:
        """Constants `[5, K]`: smoothing of level and trend, damping, smoothing of season, drift.

        The drift is the share of the window's slope that the trend begins with. A negative
        smoothing of the season means that there is none.
        """
        seasons = (-1.0, *_SEASONS) if self.season > 1 else (-1.0,)
        rows = [
            (level, trend, damping, season, float(damping > 0))
            for level, (trend, damping), season in product(_LEVELS, ((0.0, 0.0), *_TRENDS), seasons)
        ]
        return torch.tensor(rows).T

    def extrapolate(self, windows: Tensor) -> Tensor:
        # In parts: the states of all windows at once would not fit into memory.
        return torch.cat([self._smooth(part) for part in windows.split(_AT_ONCE)])

    def _smooth(self, windows: Tensor) -> Tensor:
        length, season = windows.shape[1], self.season
        alpha, beta, phi, drift = self.alpha, self.beta, self.phi, self.drift
        has_season = self.gamma >= 0
        gamma = self.gamma.clamp_min(0) * (1 - alpha)
        with_season = windows @ self.seasonal.T  # [N, 1 + m]: slope, then a value of each phase
        without = windows @ self.plain.T  # [N, 2]
        centre = with_season[:, 1:].mean(dim=1, keepdim=True)
        profile = with_season[:, 1:] - centre  # [N, m]
        slope = torch.where(has_season, with_season[:, :1], without[:, :1])  # [N, K]
        level = torch.where(has_season, centre, without[:, 1:])
        trend = slope * drift
        # Without a trend the level begins with the first rows, not with the line's intercept.
        first = (windows[:, :season] - profile).mean(dim=1, keepdim=True)
        level = torch.where(drift > 0, level - trend, first)
        states = [column[:, None] * has_season for column in profile.unbind(1)]  # m times [N, K]
        squares = torch.zeros_like(level)
        settled = min(max(season, _SETTLING), length // 3)  # the first states are guesses
        for step in range(length):
            state = states[step % season]
            ahead = level + phi * trend
            error = windows[:, step, None] - ahead - state
            if step >= settled:
                squares = squares + error**2
            level = ahead + alpha * error
            trend = phi * trend + alpha * beta * error
            states[step % season] = state + gamma * error
        size = 2 + 2 * (drift > 0) + (phi % 1 > 0) + has_season * season  # free constants [K]
        rows = length - settled
        room = (rows - size - 1).clamp_min(1)
        criterion = rows * torch.log(squares / rows + 1e-9) + 2 * size * (1 + (size + 1) / room)
        share = torch.softmax(-criterion / 2, dim=1)  # [N, K]
        growth = torch.cumsum(
            phi ** torch.arange(1, self.horizon + 1, device=phi.device)[:, None], 0
        )
        seasonal = torch.stack(states)[torch.arange(length, length + self.horizon) % season]
        ahead = level + growth[:, None] * trend + seasonal  # [H, N, K]
        return (ahead * share).sum(dim=-1).T


class ThetaForecaster(SmoothingForecaster):
    """Theta: simple smoothing with half the window's slope as drift, around a fixed season."""

    def grid(self) -> Tensor:
        season = 0.0 if self.season > 1 else -1.0
        return torch.tensor([(level, 0.0, 1.0, season, 0.5) for level in _LEVELS]).T


def line_and_season(length: int, season: int) -> Tensor:
    """What gives slope and phases `[1 + m]` of the least-squares line and season of a window `[L]`.

    Example:
        >>> fitted = line_and_season(4, 1) @ torch.tensor([1.0, 3.0, 5.0, 7.0])
        >>> [round(float(value), 4) for value in fitted]  # slope, value at step 0
        [2.0, 1.0]
    """
    steps = torch.arange(length)
    phases = steps[:, None] % season == torch.arange(season)
    design = torch.cat([steps[:, None], phases], dim=1).double()
    return torch.linalg.pinv(design).float()


class MeanForecaster(ForecastNetwork):
    """The weighted mean of networks; each sees the last rows that it was built for.

    Args:
        networks: Forecasting networks of one horizon and the same channels.
        weights: Their weights, which add up to 1.
        input_len: Steps of a window; the longest that a network needs, or more.
    """

    def __init__(
        self, networks: Sequence[ForecastNetwork], weights: Sequence[float], *, input_len: int
    ) -> None:
        first = networks[0]
        super().__init__(input_len=input_len, horizon=first.horizon, channels=first.channels)
        self.networks = nn.ModuleList(networks)
        self.weights = nn.Parameter(torch.tensor(weights), requires_grad=False)

    def forward(self, x: Tensor, *beside: Tensor | None) -> Tensor:
        """Forecast `[B, H, C]`; `beside` is for networks that take covariates."""
        parts = []
        for network in self.networks:
            rows = int(network.input_len)  # type: ignore[arg-type]  # modules say anything
            more: list[Tensor | None] = []
            if not isinstance(network, StatisticalForecaster):
                more = [None if one is None else one[:, -rows - self.horizon :] for one in beside]
            parts.append(network(x[:, -rows:], *more))
        return torch.einsum("nbhc,n->bhc", torch.stack(parts), self.weights)


class LowerLimit(NetworkAdapter):
    """A network whose forecasts are not below a limit; in training they may be.

    Args:
        network: The network.
        lowest: The limit of each channel in scaled units; None for none.
    """

    lowest: Tensor

    def __init__(self, network: ForecastNetwork, lowest: Sequence[float | None]) -> None:
        super().__init__(network)
        limits = [-math.inf if limit is None else limit for limit in lowest]
        self.register_buffer("lowest", torch.tensor(limits), persistent=False)

    def forward(self, x: Tensor, *beside: Tensor | None) -> Tensor:
        """Forecast `[B, H, C]`, or quantiles `[B, H, C, Q]`."""
        answer: Tensor = self.network(x, *beside)
        if self.training:
            return answer
        return answer.maximum(self.lowest if answer.dim() == 3 else self.lowest[:, None])


STATISTICAL: dict[str, type[StatisticalForecaster]] = {
    "seasonal naive": SeasonalNaive,
    "exponential smoothing": SmoothingForecaster,
    "Theta": ThetaForecaster,
    "linear regression": LinearForecaster,
}
