"""Trimming and latent outlier exposure: which losses count, and how."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from sacm.backbones.base import ReconstructionDetector
from sacm.strategies import parse
from sacm_lab.rivals.trim import keep_smallest
from tests.strategies.cases import Net, batches, context, step


class Labelled(NamedTuple):
    x: Tensor
    y: Tensor


class Unlabelled(NamedTuple):
    x: Tensor


class Halver(ReconstructionDetector):
    """Rebuilds half of the window, so that its loss is half the mean size of the values."""

    def __init__(self) -> None:
        super().__init__(input_len=4, channels=1)
        self.factor = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x


SIZES = torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 40])
WINDOWS = SIZES.view(-1, 1, 1).expand(10, 4, 1)


def test_the_largest_losses_are_dropped_and_one_always_stays() -> None:
    kept = keep_smallest(torch.tensor([[3.0, 1.0], [2.0, 9.0]]), 0.5)
    assert kept.tolist() == [[False, True], [True, False]]
    assert keep_smallest(torch.tensor([5.0]), 0.9).tolist() == [True]


def test_targets_of_forecasts_are_dropped_one_by_one() -> None:
    batch = batches(1)[0]
    prediction = batch.y.clone()
    prediction[2, 3, 1] += 100
    kept = parse("trim(0.007)").begin(Net(), context()).weights(batch, prediction)
    assert kept is not None
    assert (~kept).nonzero().tolist() == [[2, 3, 1]]


def test_cases_with_unlikely_labels_are_dropped() -> None:
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [4.0, 0.0]])
    batch = Labelled(torch.zeros(4, 4, 1), torch.tensor([0, 1, 1, 0]))
    kept = parse("trim(0.25)").begin(Net(), context("classification")).weights(batch, logits)
    assert kept is not None
    assert kept.tolist() == [True, True, False, True]


def test_a_detector_learns_from_the_windows_that_fit() -> None:
    own = step(Halver(), Unlabelled(WINDOWS), "trim(0.1)", "anomaly")
    loss = own.run.loss(own)
    assert loss is not None
    assert float(loss.detach()) == pytest.approx(float(SIZES[:9].mean()) / 2)


@pytest.mark.parametrize(("kind", "weight"), [("hard", 1.0), ("soft", 0.5)])
def test_latent_outlier_exposure_is_the_formula_of_the_paper(kind: str, weight: float) -> None:
    model = Halver()
    own = step(model, Unlabelled(WINDOWS), f"loe(0.2,kind={kind})", "anomaly")
    loss = own.run.loss(own)
    assert loss is not None
    normal = SIZES / 2
    labels = torch.tensor([0.0] * 8 + [weight] * 2)
    expected = ((1 - labels) * normal + labels / normal).mean()
    assert float(loss.detach()) == pytest.approx(float(expected))
    loss.backward()
    assert model.factor.grad is not None
