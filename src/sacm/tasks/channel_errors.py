"""How well a trained network forecasts each channel, from inputs that a strategy has changed."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.backbones.base import Backbone
from sacm.backbones.quantiles import take_median
from sacm.data.batches import ForecastWindows
from sacm.data.loader import WindowBatches
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, evaluating, to_device
from sacm.tasks.quantiles import ask_network


def channel_errors(
    model: Backbone,
    windows: ForecastWindows,
    came: ForecastWindows,
    strategy: Strategy,
    power: int,
) -> Tensor:
    """Mean distance, to a power, of forecasts from their targets, in each channel `[C]`.

    Args:
        model: The trained network.
        windows: Their targets count, each by its weight.
        came: The same windows of the data as they came: their inputs are what is forecast from.
        strategy: Changes the inputs.
        power: 1 for absolute, 2 for squared errors.
    """
    sums = torch.zeros(2, 1, dtype=torch.float64)
    targets, inputs = (WindowBatches(each, EVALUATION_BATCH) for each in (windows, came))
    with evaluating(model) as device:
        for batch, as_it_came in zip(targets, inputs, strict=True):
            batch = to_device(batch, device)
            x = strategy.inputs(as_it_came.x.to(device))
            distance = (take_median(ask_network(model, batch, x)).float() - batch.y).abs() ** power
            counts = torch.ones_like(distance) if batch.observed is None else batch.observed.float()
            both = torch.stack([(distance * counts).sum((0, 1)), counts.sum((0, 1))])
            sums = sums + both.double().cpu()
    return sums[0] / sums[1].clamp_min(1e-12)
