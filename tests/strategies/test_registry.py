"""Strategies by name, and what is said about them."""

from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from sacm.strategies import canonical, describe, names, parse


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("raw", "raw"),
        ("fixed(0.2)", "fixed(p=0.2)"),
        ("fixed(p=0.2)", "fixed(p=0.2)"),
        ("sacm(p_max=0.5)", "sacm"),
        ("sacm(detrend=none, log_norm=false)", "sacm(detrend=none,log_norm=false)"),
        ("guard + sacm", "guard+sacm"),
        ("labels(use=relabel)", "labels"),
        ("SACM(gamma=5)", "sacm(gamma=5.0)"),
        ("guard+raw", "guard"),
        ("raw+guard+sacm", "guard+sacm"),
        ("auto", "race(raw,sacm)"),
        (
            "race(guard+raw, guard + sacm(p_max=0.4,gamma=2))",
            "race(guard,guard+sacm(p_max=0.4,gamma=2.0))",
        ),
        ("AUTO(epochs=4)", "race(raw,sacm)"),
        ("race(sacm,raw,epochs=2)", "race(sacm,raw,epochs=2)"),
    ],
)
def test_one_spelling_for_one_meaning(text: str, spelling: str) -> None:
    assert canonical(text) == spelling
    assert canonical(spelling) == spelling


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sacmm", "Did you mean 'sacm'"),
        ("fixed", "needs p"),
        ("fixed(x)", "p must be a number"),
        ("fixed(0.1,0.2)", "no option '0.2'"),
        ("fixed(1.5)", r"\[0, 1\)"),
        ("sacm(foo=1)", "no option 'foo'"),
        ("sacm(log_norm=maybe)", "log_norm must be true or false"),
        ("sacm(p_min=0.6)", "p_min"),
        ("sacm(detrend=cubic)", "detrend must be one of"),
        ("raw+raw", "twice"),
        ("sacm(rates=all)", "rates must be one of own"),
        ("", "there is no strategy"),
        ("sacm(p_max=0.4", "parentheses do not match"),
        ("race(raw)", "two or more different"),
        ("race(raw,raw)", "two or more different"),
        ("race(raw,sacmm)", "Did you mean 'sacm'"),
        ("race(raw,auto)", "cannot be a member"),
        ("race(raw,sacm,epochs=0)", "1 or more"),
        ("race(raw,sacm)+guard", "join the members of race instead"),
    ],
)
def test_a_wrong_strategy_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text)


def test_every_strategy_and_option_is_explained() -> None:
    found = [describe(name) for name in names()]
    assert [each.name for each in found] == names()
    for strategy in found:
        assert strategy.summary.endswith(".")
        for option in strategy.options:
            assert option.help.endswith("."), (strategy.name, option.name)


def test_options_have_kinds_defaults_and_choices() -> None:
    (p,) = describe("FIXED").options
    assert (p.name, p.kind, p.default) == ("p", "number", None)
    assert describe("race").options[1].default == 4
    options = {option.name: option for option in describe("sacm").options}
    assert options["log_norm"].kind == "true or false"
    assert options["rates"].kind == "own, permuted, mean, reversed"
    assert options["rates"].help.endswith("most reliable window drops most (reversed).")
    assert (options["scorer"].default, options["mapper"].default) == ("spectral", "tanh")
