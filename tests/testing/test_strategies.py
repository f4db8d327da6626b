"""`check_strategy` finds what is wrong with a strategy, and says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from sacm.registry import temporary_entries
from sacm.strategies import Strategy, StrategyRun, TrainingContext, register
from sacm.testing import check_strategy


@dataclass(frozen=True)
class Clip(Strategy):
    """Clips the windows."""

    limit: float = 3.0

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        return x.clamp(-self.limit, self.limit)


@dataclass(frozen=True)
class InPlace(Strategy):
    """Changes the windows themselves."""

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        return x.clamp_(-1, 1)


@dataclass(frozen=True)
class Shortened(Strategy):
    """Takes a step away."""

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        return x[:, 1:]


class ForgetfulRun(StrategyRun):
    """Counts steps, keeps fewer targets at each, and forgets the count."""

    def __init__(self) -> None:
        self.steps = 0

    def weights(self, batch: object, prediction: Tensor) -> Tensor:
        self.steps += 1
        kept = torch.ones_like(prediction, dtype=torch.bool)
        kept[:, : min(self.steps, 9)] = False
        return kept


@dataclass(frozen=True)
class Forgetful(Strategy):
    """Does not save its state."""

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        return ForgetfulRun()


class HiddenRun(StrategyRun):
    """Has a parameter that the model does not know."""

    def __init__(self) -> None:
        self.scalars = [nn.Parameter(torch.zeros(()))]


@dataclass(frozen=True)
class Hidden(Strategy):
    """Hides its parameter."""

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        return HiddenRun()


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with temporary_entries():
        yield


def test_a_good_strategy_passes_with_options_and_combined() -> None:
    register("clip")(Clip)
    for text in ("clip", "clip(2)", "clip(limit=1)+sacm"):
        check_strategy(text)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (InPlace, "inputs changes its argument"),
        (Shortened, r"inputs turns \[8, 16, 2\] into \[8, 15, 2\]"),
        (Forgetful, "a resumed run goes on differently"),
        (Hidden, "a scalar is not among the parameters of the model"),
    ],
)
def test_what_is_wrong_is_said(kind: type[Strategy], sentence: str) -> None:
    register("mine")(kind)
    with pytest.raises(AssertionError, match=f"^strategy mine: {sentence}"):
        check_strategy("mine")
