"""What is said about strategies comes from their code."""

from __future__ import annotations

import pytest

from sacm.strategies import describe, names
from sacm.strategies.describe import describe_all


def test_every_strategy_and_option_is_explained() -> None:
    found = describe_all()
    assert [each.name for each in found] == names()
    for strategy in found:
        assert strategy.summary.endswith(".")
        for option in strategy.options:
            assert option.help.endswith("."), (strategy.name, option.name)


def test_options_have_kinds_defaults_and_choices() -> None:
    (p,) = describe("FIXED").options
    assert (p.name, p.kind, p.default, p.required) == ("p", "number", None, True)
    masks, share, threshold, *_ = describe("selective").options
    assert threshold.default == "pooled"  # the paper's experiments are spelt without it
    assert masks.kind == "both, uncertainty, anomaly"
    assert masks.help.endswith("(anomaly), or both.")
    assert (share.default, share.required) == (0.1, False)
    options = {option.name: option for option in describe("sacm").options}
    assert options["log_norm"].kind == "true or false"
    assert (options["scorer"].default, options["mapper"].default) == ("spectral", "tanh")


@pytest.mark.parametrize("name", ["raw", "learned_global"])
def test_a_strategy_without_options_has_none(name: str) -> None:
    assert describe(name).options == ()
