"""Options, combinations and tasks that the rivals refuse, each in one sentence."""

from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from sacm.strategies import parse

OPTIONS = [
    *("pgd(0)", "pgd(steps=0)", "augment(families=none)", "augment(share=2)"),
    *("ensemble(1)", "ema(1)", "smoothing(0)", "smoothing(samples=0)", "co_teaching(0)"),
    *("gce(0)", "gce(q=1.5)", "huber(limit=0)", "trim(0)", "loe(1)", "loe(kind=warm)"),
    *("reld(window=1)", "reld(smoothing=0)", "robust_tsf(limit=0)"),
]
CLASHES = [
    ("expose(consistency=-1)", "consistency"),
    ("ensemble+ema", "ensemble and ema both change the network"),
    ("huber+pgd", "huber and pgd both replace the loss: use one"),
    ("trim+loe", "both replace the loss"),
]
TASKS = [
    ("expose(consistency=1)", "anomaly", "consistency"),
    ("pgd", "anomaly", "pgd is for forecasting and classification"),
    ("co_teaching", "anomaly", "co_teaching is for forecasting and classification"),
    ("sacm+huber", "anomaly", "huber is for forecasting, not for anomaly"),
    ("loe", "forecasting", "loe is for anomaly, not for forecasting"),
]


@pytest.mark.parametrize(
    ("text", "message"), [*((text, text.partition("(")[0]) for text in OPTIONS), *CLASHES]
)
def test_wrong_options_and_combinations(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text)


@pytest.mark.parametrize(("text", "task", "message"), TASKS)
def test_other_tasks(text: str, task: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text).check_task(task)
