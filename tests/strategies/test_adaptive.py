"""The method, and the one learned rate it is compared with."""

from __future__ import annotations

import torch
from torch import nn

from sacm.strategies import parse

from .cases import Net, context


def test_sacm_is_the_method_with_its_settings() -> None:
    model = Net()
    run = parse("sacm(p_max=0.3,detrend=endpoint,skip=second)").begin(model, context())
    model(torch.randn(8, 16, 2))
    assert len([p for p in run.scalars() if p.numel()]) == 4
    rates = run.rates()
    assert rates is not None
    assert float(rates.max()) <= 0.3
    assert type(model.second) is nn.Dropout


def test_learned_global_is_one_rate_for_all_that_learns() -> None:
    model = Net()
    run = parse("learned_global").begin(model, context())
    model(torch.randn(8, 16, 2)).square().mean().backward()
    assert torch.allclose(run.rates(), torch.full((8,), 0.1))
    (logit,) = run.scalars()
    assert logit.grad is not None
    assert float(logit.grad.abs()) > 0
    with torch.no_grad():
        logit.fill_(100.0)
    model(torch.randn(8, 16, 2))
    assert torch.allclose(run.rates(), torch.full((8,), 0.5))
