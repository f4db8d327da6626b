"""Selective learning: unreliable targets leave the training loss.

Two masks. Uncertainty: from the second epoch on, time steps and channels whose absolute residuals
vary most over the windows that cover them. Anomaly: within each window, the steps where the model
beats a small pretrained linear estimator by most.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from sacm.backbones.blocks.normalisation import MovingAverage
from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.types import TaskName

_EPOCHS, _PATIENCE, _LEARNING_RATE = 100, 10, 2e-4  # of the linear estimator


@register("selective")
@dataclass(frozen=True)
class Selective(Strategy):
    """Leave the targets that look unreliable out of the training loss; for forecasting.

    Source: Y. Fu and others, Selective learning for deep time series forecasting, NeurIPS 2025.

    masks: Which masks choose them: residuals that vary most (uncertainty), steps where the model
        beats a small linear one by most (anomaly), or both.
    share: The share of targets that each mask leaves out, in (0, 1).
    threshold: Where residuals vary too much: one threshold for all channels (pooled), as in the
        paper's experiments, or one for each (channel), as published by its authors.
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    masks: Literal["both", "uncertainty", "anomaly"] = "both"
    share: float = 0.1
    threshold: Literal["pooled", "channel"] = "pooled"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ArgumentError(f"selective(share=…) must be in (0, 1), got {self.share}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Pretrain the estimator where the anomaly mask is asked for."""
        device = next(model.parameters()).device
        spread = estimator = None
        if self.masks != "uncertainty":
            estimator = pretrain(context.train, context.val, seed=context.seed, device=device)
        if self.masks != "anomaly":
            by_channel = self.threshold == "channel"
            spread = ResidualSpread(
                context.rows, context.channels, self.share, device, by_channel=by_channel
            )
        return SelectiveRun(self.share, spread=spread, estimator=estimator)


class SelectiveRun(StrategyRun):
    """One training with the two masks."""

    def __init__(
        self, share: float, *, spread: ResidualSpread | None, estimator: LinearEstimator | None
    ) -> None:
        self.share, self.spread, self.estimator = share, spread, estimator

    def begin_epoch(self, epoch: int) -> None:
        if self.spread is not None and epoch > 1:
            self.spread.begin_epoch()

    @torch.no_grad()
    def weights(self, batch: Any, prediction: Tensor) -> Tensor | None:
        residual = (batch.y - prediction).abs()  # [B, H, C]
        kept: Tensor | None = None
        if self.spread is not None:
            rows = batch.positions.to(residual.device)[:, None] + batch.x.shape[1]
            rows = rows + torch.arange(residual.shape[1], device=residual.device)  # [B, H]
            kept = self.spread.keep(rows)
            self.spread.add(rows, residual)
        if self.estimator is not None:
            advantage = residual - (batch.y - self.estimator(batch.x)).abs()
            count = int(self.share * residual.shape[1])
            lowest = advantage.topk(count, dim=1, largest=False).indices
            normal = torch.ones_like(residual, dtype=torch.bool).scatter_(1, lowest, False)
            kept = normal if kept is None else kept & normal
        return kept

    def state_dict(self) -> dict[str, Any]:
        parts = {"spread": self.spread, "estimator": self.estimator}
        return {name: part.state_dict() for name, part in parts.items() if part is not None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part_state in state.items():
            getattr(self, name).load_state_dict(part_state)


class ResidualSpread:
    """Variance of the absolute residuals of every row and channel over one epoch's windows."""

    def __init__(
        self,
        rows: int,
        channels: int,
        share: float,
        device: torch.device,
        *,
        by_channel: bool = False,
    ) -> None:
        self.share, self.by_channel = share, by_channel
        # Windows seen, sum and sum of squares of their residuals, in double precision; on the
        # device, to spare it waiting at every step, unless that has no float64.
        where = torch.device("cpu") if device.type == "mps" else device
        self.sums = torch.zeros(3, rows, channels, dtype=torch.float64, device=where)
        self.kept: Tensor | None = None  # [rows, channels] bool

    def add(self, rows: Tensor, residual: Tensor) -> None:
        """Collect residuals `[B, H, C]` of rows `[B, H]`."""
        flat = residual.to(self.sums.device).flatten(0, 1).double()
        places = rows.to(self.sums.device).flatten()
        for total, values in zip(
            self.sums, (torch.ones_like(flat), flat, flat.square()), strict=True
        ):
            total.index_add_(0, places, values)

    def begin_epoch(self) -> None:
        """Turn the last epoch's residuals into this epoch's mask."""
        count, total, squares = self.sums
        seen = count > 0
        variance = squares / count.clamp_min(1) - (total / count.clamp_min(1)).square()
        values, counted = variance.float().cpu(), seen.cpu()
        limit = quantile(values[counted], 1 - self.share)
        if self.by_channel:
            channels = zip(values.T, counted.T, strict=True)
            limit = torch.stack([quantile(each[rows], 1 - self.share) for each, rows in channels])
        self.kept = ~(seen & (variance > limit.to(variance.device)))
        self.sums.zero_()

    def keep(self, rows: Tensor) -> Tensor | None:
        """The mask `[B, H, C]` of rows `[B, H]`; None in the first epoch."""
        if self.kept is None:
            return None
        return self.kept[rows.to(self.kept.device)].to(rows.device)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums, "kept": self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums.copy_(state["sums"])
        self.kept = None if state["kept"] is None else state["kept"].to(self.sums.device)


def quantile(values: Tensor, q: float) -> Tensor:
    """The same as `torch.quantile` of `[N]`, which takes no more than 2^24 values."""
    ordered = values.sort().values
    rank = torch.tensor(q, dtype=values.dtype) * (len(values) - 1)
    below = int(rank)
    above = min(below + 1, len(values) - 1)
    return ordered[below].lerp(ordered[above], rank - below)


class LinearEstimator(nn.Module):
    """Trend and remainder of each channel, each with one Linear `L -> H` shared by channels."""

    def __init__(self, input_len: int, horizon: int) -> None:
        super().__init__()
        self.average = MovingAverage(25)
        self.trend = nn.Linear(input_len, horizon)
        self.remainder = nn.Linear(input_len, horizon)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, H, C]`."""
        series = x.transpose(1, 2)  # [B, C, L]
        trend = self.average(series)
        return (self.trend(trend) + self.remainder(series - trend)).transpose(1, 2)


def pretrain(
    train: Iterable[Any], val: Iterable[Any], *, seed: int, device: torch.device
) -> LinearEstimator:
    """Train on the run's own split: MAE, Adam, early stopping on validation MAE."""
    first = next(iter(train))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        estimator = LinearEstimator(first.x.shape[1], first.y.shape[1]).to(device)
    optimizer = torch.optim.Adam(estimator.parameters(), lr=_LEARNING_RATE)
    best, best_state, waited = float("inf"), copy.deepcopy(estimator.state_dict()), 0
    for _ in range(_EPOCHS):
        for batch in train:
            optimizer.zero_grad()
            (estimator(batch.x.to(device)) - batch.y.to(device)).abs().mean().backward()
            optimizer.step()
        waited += 1
        error = _mean_error(estimator, val, device)
        if error < best:
            best, best_state, waited = error, copy.deepcopy(estimator.state_dict()), 0
        if waited == _PATIENCE:
            break
    estimator.load_state_dict(best_state)
    return estimator.eval().requires_grad_(False)


@torch.no_grad()
def _mean_error(estimator: LinearEstimator, val: Iterable[Any], device: torch.device) -> float:
    total = count = 0.0
    for batch in val:
        error = (estimator(batch.x.to(device)) - batch.y.to(device)).abs()
        total += float(error.sum())
        count += error.numel()
    return total / count
