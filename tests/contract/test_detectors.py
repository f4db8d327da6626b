"""Detectors that rebuild a window score its strange steps higher."""

from __future__ import annotations

import pytest
import torch

from sacm.errors import ArgumentError

from .cases import Case, cases, every_detector, make, windows

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


def test_only_dcdetector_has_no_reconstruction() -> None:
    for case in cases("anomaly"):
        model = make(case).eval()
        if case.name == "DCdetector":
            with pytest.raises(ArgumentError, match="reconstruct"):
                model.anomaly_scores(windows(3), score="reconstruction")
        else:
            with torch.no_grad():
                model.anomaly_scores(windows(3), score="reconstruction")


@every_detector
def test_losses_and_scores_call_forward_once(case: Case) -> None:
    """`attach` sees the window there."""
    model, x, calls = make(case), windows(3), []
    model.register_forward_hook(lambda *_: calls.append(1))
    for name in ("training_loss", "validation_loss", "anomaly_scores"):
        calls.clear()
        shape = tuple(getattr(model, name)(x).shape)
        assert shape == ((3, 96) if name == "anomaly_scores" else ())
        assert len(calls) == 1
    for epoch in (1, 2, 50):
        model.set_epoch(epoch)
        assert model.training_loss(x).isfinite()
