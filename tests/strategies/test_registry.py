"""Strategies by name."""

from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from sacm.strategies import canonical, parse


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("raw", "raw"),
        ("fixed(0.2)", "fixed(p=0.2)"),
        ("fixed(p=0.2)", "fixed(p=0.2)"),
        ("sacm(p_max=0.5)", "sacm"),
        ("sacm(detrend=none, log_norm=false)", "sacm(detrend=none,log_norm=false)"),
        ("selective + sacm", "selective+sacm"),
        ("hard_denoise(keep=0.1)", "hard_denoise"),
        ("SACM(gamma=5)", "sacm(gamma=5.0)"),
        ("guard+raw", "guard"),
        ("raw+guard+sacm", "guard+sacm"),
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
        ("fixed(x)", "expected a number"),
        ("fixed(1.5)", r"\[0, 1\)"),
        ("sacm(foo=1)", "no option 'foo'"),
        ("sacm(log_norm=maybe)", "expected true or false"),
        ("sacm(p_min=0.6)", "p_min"),
        ("sacm(detrend=cubic)", "detrend must be one of"),
        ("raw+raw", "twice"),
        ("selective(masks=all)", "masks"),
        ("hard_denoise(keep=0)", "keep"),
        ("", "unknown strategy"),
    ],
)
def test_a_wrong_strategy_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text)
