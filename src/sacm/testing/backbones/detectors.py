"""A detector: one forward per call, a scalar to minimise, a score per step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sacm.backbones.base import DetectorNetwork
from sacm.errors import ArgumentError
from sacm.testing.case import BackboneCase, make, windows

CALLS: dict[str, Callable[[DetectorNetwork, Tensor], Tensor]] = {
    "training_loss": lambda model, x: model.training_loss(x),
    "validation_loss": lambda model, x: model.validation_loss(x),
    "anomaly_scores": lambda model, x: model.anomaly_scores(x),
}


def forward_runs_once_a_call(case: BackboneCase) -> None:
    """Losses and scores each call `forward` exactly once, where `attach` sees the window."""
    for name, call in CALLS.items():
        model = _detector(case)
        calls: list[int] = []
        model.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        result = call(model, windows(3))
        case.require(len(calls) == 1, f"{name} calls forward {len(calls)} times instead of once")
        expected = (3, 96) if name == "anomaly_scores" else ()
        found = tuple(result.shape)
        case.require(found == expected, f"{name} gives {found} instead of {expected}")


def reconstruction_scores_or_a_refusal(case: BackboneCase) -> None:
    """`score="reconstruction"` gives scores of at least 0, or is refused in a sentence."""
    model = _detector(case).eval()
    try:
        with torch.no_grad():
            scores = model.anomaly_scores(windows(3), score="reconstruction")
    except ArgumentError as error:
        case.require("reconstruct" in str(error), f"the refusal must say why, but says {error}")
        return
    case.require(tuple(scores.shape) == (3, 96), f"the scores are {list(scores.shape)}")
    case.require((scores >= 0).all(), "a reconstruction error is negative")


def unknown_scores_are_refused(case: BackboneCase) -> None:
    """Another kind of score is refused."""
    model = _detector(case)
    case.require_refusal(
        lambda: model.anomaly_scores(windows(3), score="magic"),  # type: ignore[arg-type]  # wrong on purpose
        "score",
        of='score="magic"',
    )


def epochs_can_be_announced(case: BackboneCase) -> None:
    """`set_epoch` does no harm, whatever the epoch."""
    model = _detector(case)
    for epoch in (1, 2, 50):
        model.set_epoch(epoch)
        finite = model.training_loss(windows(2)).isfinite()
        case.require(finite, f"the training loss of epoch {epoch} is not finite")


def _detector(case: BackboneCase) -> DetectorNetwork:
    model = make(case)
    assert isinstance(model, DetectorNetwork), f"{case.name} must be a DetectorNetwork"
    return model
