"""Every site without a known layout is reported at once."""

from __future__ import annotations

import ast

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm.inject.layout import Unresolved, layout_error

from .models import CHANNELS, windows


class ManyMixing(nn.Module):
    """Three sites that mix windows, one of them called twice, and one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(CHANNELS, 4)
        self.clean, self.first, self.second = nn.Dropout(0.1), nn.Dropout(0.1), nn.Dropout1d(0.1)
        self.third = nn.ModuleList([nn.Dropout(0.1)])

    def forward(self, x: Tensor) -> Tensor:
        h = self.clean(self.linear(x))
        h = self.first(h + h.flip(0))
        h = self.first(h) + self.second(h)
        return self.third[0](h.cumsum(0))


@pytest.mark.parametrize("lazy", [False, True])
def test_all_sites_are_listed_with_a_line_to_paste(lazy: bool) -> None:
    torch.manual_seed(0)
    model = ManyMixing()

    def find_layouts() -> None:
        sacm.attach(model, channels=CHANNELS, example_inputs=None if lazy else windows())
        model(windows())

    with pytest.raises(sacm.LayoutError) as caught:
        find_layouts()
    lines = str(caught.value).splitlines()
    assert lines[0] == "3 dropout sites of ManyMixing have no known layout:"
    for line, name in zip(lines[1:4], ["first", "second", "third.0"], strict=True):
        assert line.startswith(f"  {name} (Dropout")
        assert "mixes the rows of the 3 probed windows" in line
        assert f"site_layouts={{{name!r}: SiteLayout(dim=…, fold=…)}}" in line
    pasted = lines[4].partition("skip=")[2]
    sacm.detach(model)
    modulator = sacm.attach(
        model, channels=CHANNELS, example_inputs=windows(), skip=ast.literal_eval(pasted)
    )
    assert {site.name: site.adaptive for site in modulator.sites} == {
        "clean": True,
        "first": False,
        "second": False,
        "third.0": False,
    }


def test_functional_sites_are_among_them() -> None:
    class Mixing(ManyMixing):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(super().forward(x), 0.1, self.training)

    with pytest.raises(sacm.LayoutError, match=r"skip=\['first', .*, 'Mixing:dropout'\]"):
        sacm.attach(Mixing(), channels=CHANNELS, coverage="all", example_inputs=windows())


def test_a_single_problem_is_one_sentence() -> None:
    problem = Unresolved("a", "Dropout", (3, 4), "is odd")
    assert str(layout_error("Model", [problem, problem])) == (
        "a (Dropout): an activation [3, 4] is odd; state it with "
        "site_layouts={'a': SiteLayout(dim=…, fold=…)}, or leave this site as ordinary dropout "
        "with skip=['a']."
    )
