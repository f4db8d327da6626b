"""Errors by channel against the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.backbones.registry import build
from sacm.data import forecasting_data, forecasting_windows
from sacm.strategies import parse
from sacm.tasks.channel_errors import channel_errors


@pytest.mark.parametrize("power", [1, 2])
def test_inputs_come_from_one_side_and_targets_from_the_other(power: int) -> None:
    random = np.random.default_rng(0)
    repaired = random.normal(size=(400, 3)).astype(np.float32)
    came = repaired + random.normal(size=repaired.shape).astype(np.float32)
    sides = [
        forecasting_windows(forecasting_data(values), input_len=12, horizon=4).val
        for values in (repaired, came)
    ]
    torch.manual_seed(0)
    model = build("iTransformer", "forecasting", channels=3, size="small", input_len=12, horizon=4)
    found = channel_errors(model, *sides, parse("raw"), power)
    everything = np.arange(len(sides[0]))
    with torch.no_grad():
        forecasts = model.eval()(sides[1].batch(everything).x)
    expected = (forecasts - sides[0].batch(everything).y).abs().pow(power).mean((0, 1))
    torch.testing.assert_close(found.float(), expected)
