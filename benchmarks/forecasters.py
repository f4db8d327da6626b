"""Small forecasters for benchmarks: all rows of a data set, split in time, one plain loop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sacm.backbones import build

BATCH = 32


class Rows(NamedTuple):
    """All rows of a data set as z-scores of its training rows, and where its parts end."""

    z: np.ndarray
    train: int
    val: int


def load_rows(name: str, ratios: tuple[float, float, float] = (0.6, 0.2, 0.2)) -> Rows:
    """Read `$SACM_DATA/forecasting/<name>.npz`; every row counts, also those that others drop."""
    folder = Path(os.environ.get("SACM_DATA", "data")) / "forecasting"
    values = np.load(folder / f"{name}.npz", allow_pickle=True)["values"].astype(np.float64)
    train = int(len(values) * ratios[0])
    val = train + int(len(values) * ratios[1])
    mean, scale = values[:train].mean(0), values[:train].std(0)
    scale = np.where(scale > 0, scale, 1.0)
    return Rows(((values - mean) / scale).astype(np.float32), train, val)


def cut(z: np.ndarray, input_len: int, horizon: int, starts: np.ndarray) -> tuple[Tensor, Tensor]:
    """Inputs [N, L, C] and targets [N, H, C] at the given rows."""
    both = torch.from_numpy(z[starts[:, None] + np.arange(input_len + horizon)])
    return both[:, :input_len].contiguous(), both[:, input_len:].contiguous()


def train_forecaster(
    rows: Rows,
    backbone: str,
    *,
    size: str,
    input_len: int,
    horizon: int,
    seed: int,
    stride: int = 4,
    epochs: int = 25,
    patience: int = 6,
    learning_rate: float = 1e-3,
    loss: str = "mae",
) -> nn.Module:
    """AdamW on mean absolute or squared error; the epoch of the lowest validation error is kept."""
    distance = {"mae": nn.L1Loss(), "mse": nn.MSELoss()}[loss]
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    model = build(
        backbone, "forecasting", size=size, input_len=input_len, horizon=horizon,
        channels=rows.z.shape[1],
    )  # fmt: skip
    span = input_len + horizon
    starts = np.arange(0, rows.train - span + 1, stride)
    held = np.arange(rows.train - input_len, rows.val - span + 1, 2 * stride)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=5e-4)
    best, waited, kept = float("inf"), 0, model.state_dict()
    for epoch in range(epochs):
        model.train()
        order = random.permutation(starts)
        for first in range(0, len(order) - BATCH + 1, BATCH):
            x, y = cut(rows.z, input_len, horizon, order[first : first + BATCH])
            optimizer.zero_grad()
            distance(model(x), y).backward()
            optimizer.step()
        x, y = cut(rows.z, input_len, horizon, held)
        error = float(distance(predict(model, x), y))
        if error < best:
            best, waited = error, 0
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            waited += 1
        print(f"epoch {epoch + 1}: validation {loss} {error:.4f}", flush=True)
        if waited >= patience:
            break
    model.load_state_dict(kept)
    return model.eval()


@torch.no_grad()
def predict(model: nn.Module, x: Tensor, batch: int = 256) -> Tensor:
    """Forecasts [N, H, C] of inputs [N, L, C], in evaluation mode."""
    model.eval()
    return torch.cat([model(piece) for piece in x.split(batch)])
