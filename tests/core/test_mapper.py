from __future__ import annotations

import math

import pytest
import torch

from sacm import RateMapper, SACMConfig


def test_the_batch_spans_the_range_of_a_fresh_mapper() -> None:
    rates = RateMapper()(torch.tensor([3.0, 1.0, 2.0]))
    top = 0.05 + 0.45 * math.tanh(math.log1p(math.e))
    middle = 0.05 + 0.45 * math.tanh(0.5 * math.log1p(math.e))
    torch.testing.assert_close(rates, torch.tensor([top, 0.05, middle]))
    assert round(top, 3) == 0.439


@pytest.mark.parametrize("scores", [[2.0], [1.0, 1.0, 1.0], [0.0, 1e-9]])
def test_scores_without_spread_are_neutral(scores: list[float]) -> None:
    mapper = RateMapper()
    rates = mapper(torch.tensor(scores))
    neutral = 0.05 + 0.45 * math.tanh(0.5 * math.log1p(math.e))
    torch.testing.assert_close(rates, torch.full_like(rates, neutral))
    rates.sum().backward()
    assert mapper.gamma.grad is not None
    assert mapper.gamma.grad.isfinite()


def test_gamma_far_out_stays_inside_the_bounds() -> None:
    for gamma in (-80.0, 80.0, 1e4):
        rates = RateMapper(SACMConfig(gamma=gamma, p_min=0.1, p_max=0.7))(torch.rand(50))
        assert rates.min() >= torch.tensor(0.1)
        assert rates.max() <= torch.tensor(0.7)
