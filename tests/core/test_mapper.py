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


def test_unreliable_windows_get_the_top_rate_and_shift_nobody() -> None:
    mapper = RateMapper()
    scores = torch.tensor([1.0, 50.0, 2.0, -9.0, 3.0])
    reliable = torch.tensor([True, False, True, False, True])
    rates = mapper(scores, reliable)
    assert torch.equal(rates[reliable], mapper(scores[reliable]))
    assert (rates[~reliable] == 0.5).all()


def test_a_batch_of_unreliable_windows_is_all_at_the_top_rate() -> None:
    mapper = RateMapper()
    rates = mapper(torch.zeros(3), torch.zeros(3, dtype=torch.bool))
    assert (rates == 0.5).all()
    rates.sum().backward()
    assert mapper.gamma.grad is not None
    assert mapper.gamma.grad.isfinite()


class TestRunningRange:
    config = SACMConfig(score_range="running")

    def test_the_first_batch_is_its_own_range(self) -> None:
        scores = torch.tensor([0.0, 1.0, 4.0])
        torch.testing.assert_close(RateMapper(self.config)(scores), RateMapper()(scores))

    def test_the_range_moves_a_tenth_of_the_way_to_every_batch(self) -> None:
        mapper = RateMapper(self.config)
        mapper(torch.tensor([0.0, 1.0]))
        mapper(torch.tensor([10.0, 11.0]))
        torch.testing.assert_close(mapper.low, torch.tensor(1.0))
        torch.testing.assert_close(mapper.high, torch.tensor(2.0))

    def test_scores_outside_the_range_are_clamped(self) -> None:
        mapper = RateMapper(self.config)
        mapper(torch.tensor([0.0, 1.0]))
        rates = mapper(torch.tensor([-5.0, 0.5, 7.0]))
        top = 0.05 + 0.45 * math.tanh(math.log1p(math.e))
        torch.testing.assert_close(rates[[0, 2]], torch.tensor([0.05, top]))

    def test_a_single_window_is_placed_by_what_came_before(self) -> None:
        mapper = RateMapper(self.config)
        mapper(torch.tensor([0.0, 10.0]))
        assert mapper(torch.tensor([10.0])) > mapper(torch.tensor([5.0])) > 0.05

    def test_double_scores_and_single_buffers_go_together(self) -> None:
        rates = RateMapper(self.config)(torch.rand(5, dtype=torch.float64))
        assert rates.dtype == torch.float64

    def test_a_batch_without_a_reliable_window_leaves_the_range_alone(self) -> None:
        mapper = RateMapper(self.config)
        nobody = torch.zeros(2, dtype=torch.bool)
        assert (mapper(torch.rand(2), nobody) == 0.5).all()
        mapper(torch.tensor([0.0, 1.0]))
        mapper(torch.rand(2), nobody)
        assert (float(mapper.low), float(mapper.high)) == (0.0, 1.0)

    def test_the_range_is_part_of_the_state(self) -> None:
        mapper, twin = RateMapper(self.config), RateMapper(self.config)
        mapper(torch.tensor([2.0, 9.0]))
        twin.load_state_dict(mapper.state_dict())
        assert (float(twin.low), float(twin.high)) == (2.0, 9.0)
