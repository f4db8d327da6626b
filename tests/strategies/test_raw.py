"""The model as it is."""

from __future__ import annotations

from sacm.strategies import parse

from .cases import Net, context


def test_raw_changes_nothing() -> None:
    model = Net()
    run = parse("raw").begin(model, context())
    assert (model.first.p, model.second.p) == (0.1, 0.3)
    assert run.scalars() == []
    assert run.rates() is None
