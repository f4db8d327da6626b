"""Forecasts without gradients: seasonal naive, exponential smoothing, Theta, linear regression.

They are networks over windows `[B, L, C]` like any other. Smoothing begins anew in every window,
for every channel by itself. References: Hyndman et al., "A state space framework for automatic
forecasting using exponential smoothing methods", 2002; Hyndman and Billah, "Unmasking the Theta
method", 2003.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import torch
from torch import Tensor, nn

from sacm.backbones.base import ForecastNetwork

_LEVELS = (0.05, 0.15, 0.35, 0.65, 0.9, 0.999)  # smoothing of the level
_TRENDS = (  # smoothing of the trend and its damping: without a trend, with one, with a damped one
    ((0.0, 0.0),),
    ((0.03, 1.0), (0.2, 1.0), (0.6, 1.0)),
    ((0.03, 0.97), (0.2, 0.97), (0.03, 0.9), (0.2, 0.9), (0.9, 0.9)),
)
_SEASONS = (0.01, 0.1, 0.4)  # smoothing factors of the season
_NO_SEASON, _ADDITIVE, _MULTIPLICATIVE = 0.0, 1.0, 2.0
_FIRST_SEASONS, _FIRST_ROWS = 5, 10  # seasons and rows that give the initial states
_NEAR, _WIDTHS = 6, (1.0, 0.6, 0.4)  # neighbours of a form in each round, and how near
_SETTLING = 6  # steps that decide on nothing, at least
_LEAST_RATIO, _MOST_RATIO = 0.05, 20.0  # of a multiplicative season
_MOST_DEVIATIONS = 100.0  # that a level may have where the season is multiplicative
_AT_ONCE = 256  # windows of single channels that are smoothed together
_PENALTIES = tuple(10.0**power for power in range(-3, 5))  # ridge penalties, as shares of a row


class StatisticalForecaster(ForecastNetwork):
    """A forecast of every channel by itself, with a `season` of so many steps; 1 for none.

    `zero` `[C]` is the scaled value that is zero in the units of the data, for channels that are
    positive; infinite for others.
    """

    zero: Tensor

    def __init__(self, *, input_len: int, horizon: int, channels: int, season: int = 1) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        # Two seasons and a few rows more are needed to tell a season from a trend.
        self.season = season if input_len >= 2 * season + 2 else 1
        self.register_buffer("zero", torch.full((channels,), math.inf))

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        windows, heights, level, spread = self.normalize(x)
        ahead = self.extrapolate(windows, heights)
        # Limits the trend: forecasts leave the range of the window by that range at most.
        low, high = windows.amin(dim=1, keepdim=True), windows.amax(dim=1, keepdim=True)
        ahead = ahead.maximum(2 * low - high).minimum(2 * high - low)
        ahead = ahead.unflatten(0, level.shape[:2]) * spread + level
        return ahead.transpose(1, 2)

    def normalize(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Windows `[B C, L]` that end with 0 and deviate by 1, and what restores them.

        Heights `[B C, 1]` of their last values over zero; last values, deviations `[B, C, 1]`.
        """
        values = x.transpose(1, 2)  # [B, C, L]
        level = values[..., -1:]
        spread = values.std(dim=-1, keepdim=True, correction=0).clamp_min(1e-6)
        heights = (level - self.zero[:, None]) / spread
        return ((values - level) / spread).flatten(0, 1), heights.flatten(0, 1), level, spread

    def extrapolate(self, windows: Tensor, heights: Tensor) -> Tensor:
        """Continue windows `[N, L]` of single channels, which end with 0, by `[N, H]`."""
        raise NotImplementedError


class SeasonalNaive(StatisticalForecaster):
    """Repeats the last season, or the last value of data without one."""

    def extrapolate(self, windows: Tensor, heights: Tensor) -> Tensor:
        steps = torch.arange(self.horizon, device=windows.device) % self.season
        return windows[:, windows.shape[1] - self.season + steps]


class LinearForecaster(StatisticalForecaster):
    """A linear map of the window, the same for all channels; `weight` `[H, L]` is fitted once."""

    weight: Tensor

    def __init__(self, *, input_len: int, horizon: int, channels: int, season: int = 1) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels, season=season)
        self.register_buffer("weight", torch.zeros(horizon, input_len))

    def extrapolate(self, windows: Tensor, heights: Tensor) -> Tensor:
        return windows @ self.weight.T

    def fit(self, x: Tensor, y: Tensor, counts: Tensor) -> None:
        """Ridge regression of `y` `[N, H, C]` on training windows `[N, L, C]`, by their `counts`.

        The last third of the windows, in order of time, chooses the penalty.
        """
        inputs, _, level, spread = self.normalize(x)
        inputs = inputs.double()
        targets = ((y.transpose(1, 2) - level) / spread).flatten(0, 1).double()
        counts = counts.transpose(1, 2).flatten(0, 1).double()
        border = x.shape[2] * (2 * len(x) // 3)
        penalty, best = _PENALTIES[-1], math.inf
        for tried in _PENALTIES if border else ():
            coefficients = solve_ridge(inputs[:border], targets[:border], counts[:border], tried)
            off = (inputs[border:] @ coefficients - targets[border:]).abs()
            error = float((off * counts[border:]).mean())
            if error < best:
                penalty, best = tried, error
        self.weight = solve_ridge(inputs, targets, counts, penalty).T.float()


def solve_ridge(inputs: Tensor, targets: Tensor, counts: Tensor, penalty: float) -> Tensor:
    """Coefficients `[L, H]` of ridge regression from `[N, L]` to `[N, H]`.

    Targets that count less than 1 are filled up with what the regression says, in a few rounds.
    """
    count, size = inputs.shape
    identity = torch.eye(size, dtype=inputs.dtype, device=inputs.device)
    gram = inputs.T @ inputs + (penalty * count / size + 1e-9 * count) * identity
    factor = torch.linalg.cholesky(gram)
    coefficients = torch.cholesky_solve(inputs.T @ (counts * targets), factor)
    for _ in range(0 if bool((counts == 1).all()) else 3):
        filled = counts * targets + (1 - counts) * (inputs @ coefficients)
        coefficients = torch.cholesky_solve(inputs.T @ filled, factor)
    return coefficients


class SmoothingForecaster(StatisticalForecaster):
    """Exponential smoothing with or without trend, damping and season (additive, multiplicative).

    Constants are fitted in every window: from `forms` `[5, C, K]`, one for each kind of trend and
    season, neighbours are tried in a few rounds. The forecast is the mean of those tried last, by
    their Akaike weights. The five numbers of a form are smoothing of the level, of the trend,
    damping (0: no trend), smoothing of the season, and its kind. `fit` finds the first forms.
    """

    forms: Tensor
    noise: Tensor
    drift = 1.0  # the share of the line's slope that the trend begins with
    whole = False  # whether the first states come from the whole window

    def __init__(self, *, input_len: int, horizon: int, channels: int, season: int = 1) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels, season=season)
        first = torch.stack([forms[:, 0] for forms in self.all_forms()], dim=-1)  # [5, K]
        self.register_buffer("forms", first[:, None].repeat(1, channels, 1))
        random, widths = torch.Generator().manual_seed(0), torch.tensor(_WIDTHS)
        size = (len(_WIDTHS), 4, 1, first.shape[1], _NEAR)
        noise = widths.view(-1, 1, 1, 1, 1) * torch.randn(size, generator=random)
        self.register_buffer("noise", noise, persistent=False)

    def all_forms(self) -> list[Tensor]:
        """The forms `[5, M]` that `fit` tries, of each kind of trend and season."""
        seasons: list[list[tuple[float, float]]] = [[(0.0, _NO_SEASON)]]
        if self.season > 1:
            seasons += [[(g, kind) for g in _SEASONS] for kind in (_ADDITIVE, _MULTIPLICATIVE)]
        kinds = product(_TRENDS, seasons)
        return [
            torch.tensor([(a, *trend, *season) for a, trend, season in product(_LEVELS, *kind)]).T
            for kind in kinds
        ]

    def fit(self, x: Tensor) -> None:
        """Of each kind begin with the form that fits windows `[N, L, C]` best."""
        windows, heights, _, _ = self.normalize(x)
        kinds = [forms.to(x.device) for forms in self.all_forms()]
        criterion = self._smooth(windows, heights, torch.cat(kinds, dim=1)[:, None])[1]
        criterion = criterion.unflatten(0, (len(x), -1)).mean(dim=0)  # [C, M]
        parts = criterion.split([forms.shape[1] for forms in kinds], dim=1)
        best = [f[:, part.argmin(dim=1)] for f, part in zip(kinds, parts, strict=True)]
        self.forms = torch.stack(best, dim=-1)

    def extrapolate(self, windows: Tensor, heights: Tensor) -> Tensor:
        forms = self.forms.repeat(1, len(windows) // self.forms.shape[1], 1)  # [5, N, K]
        # In parts: the states of all windows at once would not fit into memory.
        parts = [slice(start, start + _AT_ONCE) for start in range(0, len(windows), _AT_ONCE)]
        return torch.cat([self._search(windows[p], heights[p], forms[:, p]) for p in parts])

    def _search(self, windows: Tensor, heights: Tensor, best: Tensor) -> Tensor:
        """Forecasts `[N, H]` from the neighbours of forms `[5, N, K]`."""
        for noise in self.noise:
            near = torch.sigmoid(torch.logit(best[:4, ..., None]) + noise)  # 0 and 1 stay
            kind = best[4:, ..., None].expand(-1, -1, -1, near.shape[3])
            tried = torch.cat([best[..., None], torch.cat([near, kind])], dim=-1)
            ahead, criterion = self._smooth(windows, heights, tried.flatten(2))
            place = criterion.unflatten(1, tried.shape[2:]).argmin(dim=2, keepdim=True)
            best = tried.gather(3, place.expand(len(tried), *place.shape))[..., 0]
        return (ahead * torch.softmax(-criterion / 2, dim=1)).sum(dim=-1).T

    def _smooth(self, windows: Tensor, heights: Tensor, forms: Tensor) -> tuple[Tensor, Tensor]:
        """Forecasts `[H, N, K]` and Akaike's criterion `[N, K]`; forms are `[5, N or 1, K]`."""
        length, season = windows.shape[1], self.season
        alpha, beta, phi, gamma, kind = forms
        trended, has_season, multiplies = phi > 0, kind != _NO_SEASON, kind == _MULTIPLICATIVE
        gamma = gamma * (1 - alpha)
        # A ratio needs positive values, and deviations that stand out from them.
        lowest = windows.amin(dim=1, keepdim=True) + heights
        positive = (lowest > 0) & (heights < _MOST_DEVIATIONS)
        windows = windows + torch.where(positive, heights, 0)
        allowed = positive | ~multiplies  # [N, K]

        first = windows if self.whole else windows[:, : max(_FIRST_SEASONS * season, _FIRST_ROWS)]
        without, with_season = (  # [N, 2], [N, 1 + m]: slope, then a value of each phase
            first @ line_and_season(first.shape[1], period).to(first).T for period in (1, season)
        )
        centre = with_season[:, 1:].mean(dim=1, keepdim=True)
        profile = with_season[:, 1:] - centre  # [N, m]
        mean = torch.where(positive, first.mean(dim=1, keepdim=True), 1)
        ratios = (1 + profile / mean).clamp(_LEAST_RATIO, _MOST_RATIO)
        slope = torch.where(has_season, with_season[:, :1], without[:, :1])  # [N, K]
        trend = self.drift * slope * trended
        # Without a trend the level begins with the first rows, not with the line's intercept.
        rows = first[:, :season]
        rows = torch.where(multiplies, (rows / ratios).mean(1)[:, None], rows.mean(1)[:, None])
        intercept = torch.where(has_season, centre, without[:, 1:])
        level = torch.where(trended, intercept - trend, rows)
        states = [  # m times [N, K]
            torch.where(multiplies, ratio[:, None], value[:, None] * has_season)
            for ratio, value in zip(ratios.unbind(1), profile.unbind(1), strict=True)
        ]
        squares = torch.zeros_like(level)
        settled = min(max(season, _SETTLING), length // 3)  # the first states are guesses
        for step in range(length):
            state = states[step % season]
            base = level + phi * trend
            expected = torch.where(multiplies, base * state, base + state)
            error = windows[:, step, None] - expected
            if step >= settled:
                squares = squares + error**2
            change = torch.where(multiplies, error / state, error)
            level = base + alpha * change
            trend = phi * trend + alpha * beta * change
            ratio = state + gamma * error / base.clamp_min(1e-3)
            states[step % season] = torch.where(
                multiplies, ratio.clamp(_LEAST_RATIO, _MOST_RATIO), state + gamma * error
            )
        size = 2 + 2 * trended + (phi % 1 > 0) + has_season * (season + 1)  # free constants
        correction = (size + 1) * (size + 2) / (length - size - 2).clamp_min(1)
        criterion = length * torch.log(squares / (length - settled) + 1e-9) + 2 * (
            size + correction
        )
        steps = torch.arange(1, self.horizon + 1, device=phi.device)
        growth = torch.cumsum(phi ** steps[:, None, None], 0) * trended
        base = level + growth * trend  # [H, N, K]
        seasonal = torch.stack(states)[torch.arange(length, length + self.horizon) % season]
        ahead = torch.where(multiplies, base * seasonal, base + seasonal)
        # Forms may have run away: their weight is 0, their values count not.
        allowed = allowed & squares.isfinite()
        ahead = torch.where(allowed, ahead - torch.where(positive, heights, 0), 0)
        return ahead, torch.where(allowed, criterion, math.inf)


class ThetaForecaster(SmoothingForecaster):
    """Theta: simple smoothing with half the window's slope as drift, around a fixed season."""

    drift, whole = 0.5, True

    def all_forms(self) -> list[Tensor]:
        kinds = (_NO_SEASON, _ADDITIVE, _MULTIPLICATIVE)[: 3 if self.season > 1 else 1]
        return [torch.tensor([(a, 0.0, 1.0, 0.0, kind) for a in _LEVELS]).T for kind in kinds]


@cache
def line_and_season(length: int, season: int) -> Tensor:
    """What gives slope and phases `[1 + m]` of the least-squares line and season of a window."""
    steps = torch.arange(length)
    phases = steps[:, None] % season == torch.arange(season)
    design = torch.cat([steps[:, None], phases], dim=1).double()
    return torch.linalg.pinv(design).float()


class MeanForecaster(ForecastNetwork):
    """The weighted mean of networks; each sees the last rows that it was built for, or fewer."""

    def __init__(
        self, networks: Sequence[ForecastNetwork], weights: Sequence[float], *, input_len: int
    ) -> None:
        first = networks[0]
        super().__init__(input_len=input_len, horizon=first.horizon, channels=first.channels)
        self.networks = nn.ModuleList(networks)
        self.weights = nn.Parameter(torch.tensor(weights), requires_grad=False)

    def forward(self, x: Tensor, *beside: Tensor | None) -> Tensor:
        parts = []
        for network in self.networks:  # `beside` is for those that take covariates
            rows = int(network.input_len)  # type: ignore[arg-type]  # modules say anything
            more: list[Tensor | None] = []
            if not isinstance(network, StatisticalForecaster):
                more = [None if one is None else one[:, -rows - self.horizon :] for one in beside]
            parts.append(network(x[:, -rows:], *more))
        return torch.einsum("nbhc,n->bhc", torch.stack(parts), self.weights)


STATISTICAL: dict[str, type[StatisticalForecaster]] = {
    "seasonal naive": SeasonalNaive,
    "exponential smoothing": SmoothingForecaster,
    "Theta": ThetaForecaster,
    "linear regression": LinearForecaster,
}
