from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.backbones import ClassifierNetwork, ReconstructionDetector
from sacm.inject.sites import SiteLayout


class Identity(ReconstructionDetector):
    """Rebuilds its window times a factor."""

    def __init__(self, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.factor = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        return self.factor * x


class Folding(ClassifierNetwork):
    """Dropouts at several depths."""

    def __init__(self) -> None:
        super().__init__(input_len=4, channels=2, classes=2)
        self.top = nn.Dropout(0.1)
        self.part = nn.Sequential(nn.Dropout(0.1), nn.Sequential(nn.Dropout(0.1)))
        self.partial = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :2]


def test_layouts_by_part() -> None:
    model = Folding()
    model.state_layouts({"part": 3, "part.1": 5})
    assert model.sacm_layouts == {
        "top": SiteLayout(dim=0, fold=1),
        "part.0": SiteLayout(dim=0, fold=3),
        "part.1.0": SiteLayout(dim=0, fold=5),
        "partial": SiteLayout(dim=0, fold=1),
    }


def test_reconstruction_error_is_loss_and_score() -> None:
    model = Identity(input_len=4, channels=2)
    x = torch.randn(3, 4, 2)
    torch.testing.assert_close(model.training_loss(x), 0.5 * x.abs().mean())
    torch.testing.assert_close(model.validation_loss(x), 0.5 * x.abs().mean())
    torch.testing.assert_close(model.anomaly_scores(x), 0.5 * x.abs().mean(dim=-1))
