"""One rate for every site."""

from __future__ import annotations

from sacm.strategies import parse

from .cases import Net, context


def test_fixed_sets_every_rate() -> None:
    model = Net()
    parse("fixed(0.25)").begin(model, context())
    assert model.first.p == model.second.p == 0.25
