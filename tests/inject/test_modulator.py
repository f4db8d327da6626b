from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import sacm

from . import models
from .models import CHANNELS, windows


class HalfOfScore(nn.Module):
    """A mapper of the user's own, with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.tensor(0.5))

    def forward(self, scores: Tensor) -> Tensor:
        return self.share * scores / scores.max()


class Constant(nn.Module):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value

    def forward(self, scores: Tensor) -> object:
        return self.value


def test_a_mapper_of_ones_own_gives_the_rates_and_is_trained() -> None:
    torch.manual_seed(0)
    model = models.MLP()
    modulator = sacm.attach(model, channels=CHANNELS, mapper=HalfOfScore())
    model(windows()).sum().backward()
    torch.testing.assert_close(modulator.rates, 0.5 * modulator.scores / modulator.scores.max())
    assert modulator.mapper.share.grad != 0
    assert "sacm_modulator.mapper.share" in model.state_dict()
    assert sum(p.numel() for p in modulator.parameters()) == 2 * CHANNELS + 1 + 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(6, 1), r"one rate per window, \[6\], but gave \[6, 1\]"),
        (torch.zeros(5), r"one rate per window, \[6\], but gave \[5\]"),
        (0.5, "but gave float"),
        (torch.full((6,), 1.0), r"must lie in \[0, 1\), got 1"),
        (torch.full((6,), torch.nan), r"must lie in \[0, 1\), got nan"),
        (torch.tensor([0.1, 0.1, -0.25, 0.1, 0.1, 0.1]), r"must lie in \[0, 1\), got -0.25"),
    ],
)
def test_a_mapper_that_gives_something_else_is_refused(value: object, message: str) -> None:
    model = models.MLP()
    sacm.attach(model, channels=CHANNELS, mapper=Constant(value))
    with pytest.raises(sacm.ArgumentError, match=message):
        model(windows())


def test_forced_rates_end_with_their_block_also_after_an_error() -> None:
    model = models.MLP()
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    wrong = pytest.raises(sacm.ArgumentError, match="2 forced rates were given for a batch of 6")
    with wrong, modulator.forced_rates(torch.zeros(2)):
        model(windows())
    with modulator.forced_rates(torch.full((6,), 0.25)):
        with modulator.forced_rates(torch.zeros(6)):
            model(windows())
            assert modulator.rates.tolist() == [0.0] * 6
        model(windows())
        assert modulator.rates.tolist() == [0.25] * 6
    model(windows())
    assert modulator.rates.unique().numel() > 2
