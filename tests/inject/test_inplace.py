"""Models that change activations in place."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm

from .models import CHANNELS, windows


class Residual(nn.Module):
    """Adds what dropped to the very activation that the site saw."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(CHANNELS, 50), nn.Dropout(0.1)
        self.head = nn.Linear(50, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        dropped = self.drop(h)
        h += dropped
        return self.head(h)


class OutOfPlace(Residual):
    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        return self.head(h + self.drop(h))


def test_an_activation_that_is_overwritten_later_gives_the_same_gradients() -> None:
    results = []
    for make in (Residual, OutOfPlace):
        torch.manual_seed(0)
        model = make()
        modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows())
        torch.manual_seed(1)
        loss = model(windows()).square().sum()
        loss.backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters())])
        assert modulator.mapper.gamma.grad != 0
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected)


def test_only_what_is_overwritten_is_copied() -> None:
    model = nn.Sequential(nn.Linear(CHANNELS, 8), nn.Dropout(0.1), nn.ReLU(inplace=True))
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    assert not modulator.sites[0].overwritten
    model = Residual()
    assert sacm.attach(model, channels=CHANNELS, example_inputs=windows()).sites[0].overwritten


class ReturnIgnored(nn.Module):
    """`inplace=True`, and nobody looks at what the dropout returns."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.linear, self.kind = nn.Linear(CHANNELS, 60), kind
        if kind != "function":
            self.drop = getattr(nn, kind)(0.1, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        if self.kind == "function":
            F.dropout(h, 0.1, training=self.training, inplace=True)
        else:
            self.drop(h)
        return h


@pytest.mark.parametrize("kind", ["Dropout", "Dropout1d", "function"])
def test_inplace_dropout_drops_in_place(kind: str) -> None:
    torch.manual_seed(0)
    model = ReturnIgnored(kind)
    coverage = "all" if kind == "function" else "modules"
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows(), coverage=coverage)
    out = model(windows())
    share = (out == 0).flatten(1).double().mean(dim=1)
    assert (share - modulator.rates).abs().max() < 0.3
    assert share.min() > 0 or kind == "Dropout1d"
    assert share.max() > 0.2
    out.square().sum().backward()
    assert modulator.mapper.gamma.grad != 0
    model.eval()
    assert torch.equal(model(windows()), model.linear(windows()))
