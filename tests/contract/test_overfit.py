"""Every network learns a small task, as it is and with SACM attached."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sacm
from sacm.backbones.base import Backbone, DetectorNetwork

from . import smoke
from .cases import Case, cases, every_detector, every_forecaster, make

pytestmark = pytest.mark.slow

both_ways = pytest.mark.parametrize("attached", [False, True], ids=["raw", "attached"])
# Every network as it is in each run of the tests; attached, which takes twice the time, at night.
attached_at_night = pytest.mark.parametrize(
    "attached", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["raw", "attached"]
)
LENGTH = 100
THINNER = {"width": 16, "hidden": 32}  # than `small`, where less is enough
# At its own temperature of 50 AnomTrans's score is nearly one-hot in each window, and no better
# than chance at these anomalies; the temperature has no part in training.
SOFTER = {"temperature": 1.0}
FORECASTERS = {"Informer": THINNER, "Crossformer": THINNER}
DETECTORS = {"NSFormer": THINNER, "TranAD": THINNER, "AnomTrans": SOFTER}


def attach(model: Backbone, x: Tensor, *, attached: bool) -> None:
    if attached:
        sacm.attach(model, channels=x.shape[2], example_inputs=x[:4])


def squared_error(model: Backbone, x: Tensor, y: Tensor) -> float:
    """In evaluation mode."""
    model.eval()
    with torch.no_grad():
        return float((model(x) - y).square().mean())


@attached_at_night
@every_forecaster
def test_forecasters_overfit_four_windows(case: Case, attached: bool) -> None:
    """The squared error falls by a factor of 20."""
    x, y = (part[::16] for part in smoke.forecasting_windows(24, 24))
    model = make(case, length=24, channels=3, horizon=24, **FORECASTERS.get(case.name, {}))
    attach(model, x, attached=attached)
    start = squared_error(model, x, y)

    def loss(indices: Tensor) -> Tensor:
        return (model(x[indices]) - y[indices]).square().mean()

    assert smoke.fit(
        model,
        loss,
        count=len(x),
        steps=600,
        reached=lambda: squared_error(model, x, y) < start / 20,
        learning_rate=3e-3,
    )


@attached_at_night
@pytest.mark.parametrize("case", cases("classification"), ids=str)
def test_classifiers(case: Case, attached: bool) -> None:
    x, labels = smoke.two_classes(96, seed=0)
    fresh, fresh_labels = smoke.two_classes(200, seed=1)
    model = make(case, length=64, channels=2, classes=2, prepare=False)
    model.prepare(x)
    attach(model, x, attached=attached)

    def reached() -> bool:
        known = smoke.accuracy(model, x, labels)
        return known == 1.0 and smoke.accuracy(model, fresh, fresh_labels) >= 0.95

    loss = smoke.cross_entropy(model, x, labels)
    assert smoke.fit(model, loss, count=len(x), steps=100, reached=reached)


@every_detector
def test_detectors_overfit_four_windows(case: Case) -> None:
    """What chooses their checkpoint falls by a factor of 20."""
    x = smoke.forecasting_windows(LENGTH, 1)[0][::16]
    model = make(case, length=LENGTH, channels=3, prepare=False)
    assert isinstance(model, DetectorNetwork)
    model.prepare(x)

    def validation() -> float:
        model.eval()
        with torch.no_grad():
            return float(model.validation_loss(x))

    start = validation()
    assert smoke.fit(
        model,
        lambda indices: model.training_loss(x[indices]),
        count=len(x),
        steps=800,
        reached=lambda: validation() < start / 20,
        learning_rate=3e-3,
    )


def finds_anomalies(model: DetectorNetwork, *, frozen: bool, area: float = 0.9) -> bool:
    series = smoke.three_sines(1000, seed=1)
    strange, labels = smoke.with_anomalies(series, frozen=frozen)
    return smoke.area_under_roc(smoke.scores_of(model, strange, LENGTH), labels) >= area


@pytest.mark.nightly
@both_ways
@every_detector
def test_detectors(case: Case, attached: bool) -> None:
    train = smoke.three_sines(2000, seed=0).unfold(0, LENGTH, 1).transpose(1, 2)  # [W, L, C]
    model = make(case, length=LENGTH, channels=3, prepare=False, **DETECTORS.get(case.name, {}))
    assert isinstance(model, DetectorNetwork)
    model.prepare(train)
    attach(model, train, attached=attached)

    def validation() -> float:
        model.eval()
        with torch.no_grad():
            return float(model.validation_loss(train[::10]))

    start = validation()

    def reached() -> bool:
        if case.name == "AnomTrans":
            return validation() < 0.05 * start and finds_anomalies(model, frozen=False, area=0.7)
        # Copying a window hides frozen stretches; only the shifts are asked of these two.
        return finds_anomalies(model, frozen=case.name not in ("NSFormer", "TranAD"))

    def loss(indices: Tensor) -> Tensor:
        return model.training_loss(train[indices])

    assert smoke.fit(model, loss, count=len(train), steps=200, reached=reached)
