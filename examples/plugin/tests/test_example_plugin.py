"""The plug-in, checked as sacm checks its own parts; it must be installed."""

from __future__ import annotations

import torch

import sacm
from sacm.metrics import metric
from sacm.testing import check_backbone, check_scorer, check_strategy


def test_backbone() -> None:
    check_backbone("GatedLinear")


def test_strategy() -> None:
    for text in ("clip", "clip(limit=2)", "clip+sacm(scorer=roughness)"):
        check_strategy(text)


def test_scorer() -> None:
    check_scorer("roughness")


def test_data_set() -> None:
    data = sacm.data.load("tides")
    assert (data.name, data.values.shape) == ("Two Tides", (1200, 2))
    assert sacm.data.fingerprint(data) == sacm.data.fingerprint(sacm.data.load("Two Tides"))


def test_metric() -> None:
    known = metric("hit_rate")
    assert known.function is not None
    prediction = torch.tensor([[[0.0], [1.0]], [[0.2], [0.3]]])  # two windows, two steps
    observed = torch.tensor([[[True], [True]], [[True], [False]]])
    found = known.function(prediction, torch.zeros(2, 2, 1), observed)
    assert found.tolist() == [0.5, 1.0]
