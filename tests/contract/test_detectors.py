"""Every detector: one forward per call, a scalar to minimise, a score per step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sacm.errors import ArgumentError

from .cases import Case, cases, every_detector, make, windows

CALLS: dict[str, Callable[..., Tensor]] = {
    "training_loss": lambda model, x: model.training_loss(x),
    "validation_loss": lambda model, x: model.validation_loss(x),
    "anomaly_scores": lambda model, x: model.anomaly_scores(x),
}


@every_detector
@pytest.mark.parametrize("call", CALLS)
def test_forward_is_called_exactly_once(case: Case, call: str) -> None:
    model = make(case)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    result = CALLS[call](model, windows(3))
    assert len(calls) == 1
    assert result.shape == ((3, 96) if call == "anomaly_scores" else ())


# The scores of AnomTrans and DCdetector compare attention maps: untrained they say nothing yet.
REBUILDING = [c for c in cases("anomaly") if c.name not in ("AnomTrans", "DCdetector")]


@pytest.mark.parametrize("case", REBUILDING, ids=str)
def test_scores_rise_where_the_window_is_strange(case: Case) -> None:
    model = make(case).eval()
    x = windows(4)
    strange = x.clone()
    strange[:, 40:44] += 6.0
    with torch.no_grad():
        plain, raised = model.anomaly_scores(x), model.anomaly_scores(strange)
    assert (raised[:, 40:44].mean(dim=1) > plain[:, 40:44].mean(dim=1)).all()


@every_detector
def test_reconstruction_score_or_a_clear_refusal(case: Case) -> None:
    model = make(case).eval()
    x = windows(3)
    if case.name == "DCdetector":
        with pytest.raises(ArgumentError, match="reconstruct"):
            model.anomaly_scores(x, score="reconstruction")
        return
    with torch.no_grad():
        scores = model.anomaly_scores(x, score="reconstruction")
    assert scores.shape == (3, 96)
    assert (scores >= 0).all()


@every_detector
def test_unknown_score(case: Case) -> None:
    with pytest.raises(ArgumentError, match="score"):
        make(case).anomaly_scores(windows(3), score="magic")


@every_detector
def test_epochs_are_announced_without_harm(case: Case) -> None:
    model = make(case)
    for epoch in (1, 2, 50):
        model.set_epoch(epoch)
        assert model.training_loss(windows(2)).isfinite()
