"""What integrations are trained on: ETTh1 where it is at hand, or a made-up series; a network."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def load_series(rows: int, channels: int = 1) -> np.ndarray:
    """Return standardised values `[rows, channels]`: the last channels of ETTh1, or noisy sines."""
    folder = os.environ.get("SACM_DATA", "")
    path = Path(folder) / "forecasting" / "ETTh1.npz"
    if folder and path.is_file():
        with np.load(path) as held:
            values = held["values"][:rows, -channels:].astype(np.float64)
    else:
        noise = 0.1 * np.random.default_rng(0).normal(size=(rows, channels))
        values = np.sin(np.arange(rows)[:, None] / 4 + np.arange(channels)) + noise
    return ((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32)


def cut_windows(rows: int, length: int, channels: int = 1) -> np.ndarray:
    """Return all windows of the series, `[rows - length + 1, length, channels]`."""
    series = load_series(rows, channels)
    view = np.lib.stride_tricks.sliding_window_view(series, length, axis=0)
    return np.ascontiguousarray(view.transpose(0, 2, 1))


def make_loader(length: int, channels: int) -> DataLoader[tuple[Tensor, ...]]:
    """Return batches of 8 windows and their means."""
    x = torch.from_numpy(cut_windows(175, length, channels))
    return DataLoader(TensorDataset(x, x.mean(dim=(1, 2))[:, None]), batch_size=8)


def small_network(length: int, channels: int) -> nn.Module:
    """Return a network with one dropout, the same every time."""
    torch.manual_seed(0)
    layers = (nn.Linear(length * channels, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    return nn.Sequential(nn.Flatten(), *layers)
