"""DLinear, the small estimator that selective learning compares the model with."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sacm.backbones.blocks.decomposition import MovingAverage
from sacm.strategies.base import Loader

_EPOCHS, _PATIENCE, _LEARNING_RATE = 100, 10, 2e-4


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


def pretrain(train: Loader, val: Loader, *, seed: int, device: torch.device) -> LinearEstimator:
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
        error = _mean_error(estimator, val, device)
        if error < best:
            best, best_state, waited = error, copy.deepcopy(estimator.state_dict()), 0
        else:
            waited += 1
            if waited == _PATIENCE:
                break
    estimator.load_state_dict(best_state)
    return estimator.eval().requires_grad_(False)


@torch.no_grad()
def _mean_error(estimator: LinearEstimator, val: Loader, device: torch.device) -> float:
    total = count = 0.0
    for batch in val:
        error = (estimator(batch.x.to(device)) - batch.y.to(device)).abs()
        total += float(error.sum())
        count += error.numel()
    return total / count
