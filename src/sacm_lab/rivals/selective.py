"""Selective learning: unreliable targets leave the training loss.

Two masks. Uncertainty: from the second epoch on, time steps and channels whose absolute residuals
vary most over the windows that cover them. Anomaly: within each window, the steps where the model
beats a small pretrained linear estimator by most.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sacm.backbones.blocks.normalisation import MovingAverage
from sacm.errors import ArgumentError
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName

_EPOCHS, _PATIENCE, _LEARNING_RATE = 100, 10, 2e-4  # of the linear estimator


@dataclass(frozen=True)
class Selective(Strategy):
    """Leave the targets that look unreliable out of the training loss; for forecasting.

    Source: Y. Fu and others, Selective learning for deep time series forecasting, NeurIPS 2025.

    share: The share of targets that each of two masks leaves out, in (0, 1).
    """

    name: ClassVar[str] = "selective"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ArgumentError(f"selective(share=…) must be in (0, 1), got {self.share}.")

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Pretrain the estimator of the anomaly mask."""
        device = next(model.parameters()).device
        estimator = pretrain(context.train, context.val, seed=context.seed, device=device)
        spread = ResidualSpread(context.rows, context.channels, self.share, device)
        return SelectiveRun(self.share, spread, estimator)


class SelectiveRun(StrategyRun):
    """One training with the two masks."""

    def __init__(self, share: float, spread: ResidualSpread, estimator: LinearEstimator) -> None:
        self.share, self.spread, self.estimator = share, spread, estimator

    def begin_epoch(self, epoch: int) -> None:
        if epoch > 1:
            self.spread.begin_epoch()

    @torch.no_grad()
    def weights(self, batch: Any, prediction: Tensor) -> Tensor:
        residual = (batch.y - prediction).abs()  # [B, H, C]
        advantage = residual - (batch.y - self.estimator(batch.x)).abs()
        lowest = advantage.topk(int(self.share * residual.shape[1]), dim=1, largest=False).indices
        normal = torch.ones_like(residual, dtype=torch.bool).scatter_(1, lowest, False)
        rows = batch.positions.to(residual.device)[:, None] + batch.x.shape[1]
        rows = rows + torch.arange(residual.shape[1], device=residual.device)  # [B, H]
        kept = self.spread.keep(rows)
        self.spread.add(rows, residual)
        return normal if kept is None else kept & normal

    def state_dict(self) -> dict[str, Any]:
        return {"spread": self.spread.state_dict(), "estimator": self.estimator.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.spread.load_state_dict(state["spread"])
        self.estimator.load_state_dict(state["estimator"])


class ResidualSpread:
    """Variance of the absolute residuals of every row and channel over one epoch's windows."""

    def __init__(self, rows: int, channels: int, share: float, device: torch.device) -> None:
        self.share = share
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
        limit = quantile(variance.float().cpu()[seen.cpu()], 1 - self.share)
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
        total = count = 0.0
        with torch.no_grad():
            for batch in val:
                error = (estimator(batch.x.to(device)) - batch.y.to(device)).abs()
                total += float(error.sum())
                count += error.numel()
        waited += 1
        if total / count < best:
            best, best_state, waited = total / count, copy.deepcopy(estimator.state_dict()), 0
        if waited == _PATIENCE:
            break
    estimator.load_state_dict(best_state)
    return estimator.eval().requires_grad_(False)
