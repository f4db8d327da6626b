"""Attached models do not see each other's rates, and a failed forward leaves nothing behind."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack

import sacm

from . import models
from .models import CHANNELS, windows

coverages = pytest.mark.parametrize("coverage", ["modules", "all"])


def make(seed: int, coverage: str = "all") -> tuple[nn.Module, sacm.CapacityModulator]:
    torch.manual_seed(seed)
    model = models.Encoder(batch_first=True)
    return model, sacm.attach(model, channels=CHANNELS, coverage=coverage)


@coverages
def test_interleaved_training(coverage: str) -> None:
    """Forward of one, forward of the other, then both backward passes."""
    (first, one), (second, two) = make(0, coverage), make(1, coverage)
    expected = []
    for model, modulator, seed in ((first, one, 3), (second, two, 4)):
        torch.manual_seed(seed)
        model(windows(6 + seed, seed=seed)).sum().backward()
        expected.append((modulator.rates, [p.grad.clone() for p in model.parameters()]))
        model.zero_grad()
    torch.manual_seed(3)
    loss_one = first(windows(9, seed=3)).sum()
    torch.manual_seed(4)
    loss_two = second(windows(10, seed=4)).sum()
    loss_one.backward()
    loss_two.backward()
    for (rates, gradients), model, modulator in zip(
        expected, (first, second), (one, two), strict=True
    ):
        assert torch.equal(modulator.rates, rates)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            assert torch.equal(parameter.grad, gradient)


# A random model whose probe meets numbers drawn by another thread learns layouts a batch later.
@pytest.mark.filterwarnings("ignore:.*drop at their mean rate:sacm.SACMWarning")
@coverages
def test_threads(coverage: str) -> None:
    """Four models train at the same time, each probed inside its thread."""
    expected = []
    for seed in range(4):
        model, modulator = make(seed, coverage)
        model(windows(4 + seed, seed=seed))
        expected.append(modulator.rates)
    pairs = [make(seed, coverage) for seed in range(4)]
    barrier = threading.Barrier(4)

    def train(seed: int) -> list[Tensor]:
        model, modulator = pairs[seed]
        barrier.wait()
        seen = []
        for _ in range(15):
            model(windows(4 + seed, seed=seed)).sum().backward()
            seen.append(modulator.rates)
        return seen

    with ThreadPoolExecutor(4) as pool:
        for rates, seen in zip(expected, pool.map(train, range(4)), strict=True):
            assert all(torch.equal(rates, other) for other in seen)


def test_a_model_around_or_inside_an_attached_one_is_refused() -> None:
    model = nn.Sequential(models.MLP(), nn.Linear(2, 2))
    sacm.attach(model[0], channels=CHANNELS)
    with pytest.raises(sacm.ArgumentError, match="0 of Sequential is already attached"):
        sacm.attach(model, channels=CHANNELS)
    sacm.detach(model[0])
    sacm.attach(model, channels=CHANNELS)
    with pytest.raises(sacm.ArgumentError, match="already attached"):
        sacm.attach(model[0], channels=CHANNELS)


class Fragile(models.Functional):
    fail = False

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        if self.fail:
            raise RuntimeError("on purpose")
        return out


@coverages
def test_a_forward_that_raises_leaves_nothing_stale(coverage: str) -> None:
    torch.manual_seed(0)
    model = Fragile()
    model.head = nn.Sequential(nn.Dropout(0.1), model.head)
    modulator = sacm.attach(model, channels=CHANNELS, coverage=coverage, example_inputs=windows())
    model(windows(4))
    model.fail = True
    with pytest.raises(RuntimeError, match="on purpose"):
        model(windows(7, seed=1))
    assert _get_current_function_mode_stack() == []
    assert modulator.state.stack == []
    with pytest.warns(sacm.SACMWarning, match="called outside a training forward"):
        model.head(torch.randn(7, 16, 12))
    model.fail = False
    torch.manual_seed(5)
    after_failure = model(windows(5, seed=2))
    twin = Fragile()
    twin.head = nn.Sequential(nn.Dropout(0.1), twin.head)
    sacm.attach(twin, channels=CHANNELS, coverage=coverage, example_inputs=windows())
    twin.load_state_dict(model.state_dict())
    torch.manual_seed(5)
    assert torch.equal(after_failure, twin(windows(5, seed=2)))


def test_a_window_that_is_refused_leaves_no_rates() -> None:
    model = models.MLP()
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    model(windows())
    with pytest.raises(sacm.ArgumentError, match="channels"):
        model(torch.randn(6, 16, CHANNELS + 1))
    assert modulator.rates is None
    assert modulator.scores is None


def test_a_part_called_by_itself_drops_as_before_with_one_warning() -> None:
    """Before any forward, after one, and in the Monte-Carlo way: sites on, model off."""
    torch.manual_seed(0)
    model = models.MLP()
    sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    h = torch.randn(6, 48)
    with pytest.warns(
        sacm.SACMWarning, match=r"hidden\.2 \(Dropout\): is called outside"
    ) as caught:
        model.hidden(h)
    assert len(caught) == 1
    model(windows()).sum().backward()
    assert not torch.equal(model.hidden(h), model.hidden(h))
    model.eval()
    assert torch.equal(model(windows()), model(windows()))
    model.hidden[2].train()
    assert not torch.equal(model(windows()), model(windows()))
