"""The judge of `attach` on other libraries' models tells right from wrong."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from benchmarks.third_party.case import CHANNELS, Case, Configuration, make_windows
from benchmarks.third_party.judge import judge
from benchmarks.third_party.libraries.torch_layers import configurations
from sacm import SiteLayout


class Reversed(nn.Module):
    """Drops windows in reverse order, and states the opposite."""

    sacm_layouts = {"drop": SiteLayout(dim=0)}  # noqa: RUF012  # as a model's author would write it

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.drop(self.first(x).flip(0)).flip(0))


class Shuffled(Reversed):
    """The same without a statement."""

    sacm_layouts: dict[str, SiteLayout] = {}  # noqa: RUF012  # see above


def verdict_on(model: type[nn.Module]) -> tuple[str, str]:
    case = Configuration("own", model.__name__, lambda: Case(model(), (make_windows(CHANNELS),)))
    found = judge(case)
    return found.kind, found.sentence


def test_a_mask_on_another_window_is_wrong() -> None:
    kind, sentence = verdict_on(Reversed)
    assert kind == "wrong"
    assert "window 0" in sentence


def test_a_layout_that_attach_cannot_know_is_refused() -> None:
    kind, sentence = verdict_on(Shuffled)
    assert kind == "refused"
    assert "drop (Dropout)" in sentence


@pytest.mark.parametrize(
    ("name", "kind"),
    [("TransformerEncoderLayer", "right"), ("LSTM of 2 with dropout", "right")],
)
def test_layers_of_torch_are_right(name: str, kind: str) -> None:
    (chosen,) = (each for each in configurations() if each.name == name)
    assert judge(chosen).kind == kind
