"""Every network, strategy and scorer of this package passes the checks that plug-ins use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sacm.strategies import names, scorers
from sacm.testing import check_scorer, check_strategy
from sacm.testing.backbones import CHECKS

from .cases import Case, cases, in_daily_work

BACKBONES = [
    pytest.param(case, check, id=f"{case}-{check.__name__}", marks=in_daily_work(case))
    for case in cases()
    for check in CHECKS
]
# Strategies that need an option, or are quicker with one.
NEEDED = {"fixed": "fixed(p=0.2)", "ensemble": "ensemble(k=2)", "smoothing": "smoothing(samples=2)"}
OTHERS = [
    "sacm(p_max=0.3,detrend=endpoint,skip=*.mlp.dropout)",
    pytest.param("hard_denoise(keep=0.2,kind=lowpass)", marks=pytest.mark.lab),
    pytest.param("selective+sacm", marks=pytest.mark.lab),
    pytest.param("ema+sacm", marks=pytest.mark.lab),
]


@pytest.mark.parametrize(("case", "check"), BACKBONES)
def test_backbones(case: Case, check: Callable[[Case], None]) -> None:
    check(case)


# `oracle` needs data that were broken on purpose, which the check does not have.
CHECKED = [NEEDED.get(name, name) for name in names() if name != "oracle"]


@pytest.mark.parametrize("text", [*CHECKED, *OTHERS])
def test_strategies(text: str) -> None:
    check_strategy(text)


@pytest.mark.parametrize("name", scorers.names())
def test_scorers(name: str) -> None:
    check_scorer(name)
