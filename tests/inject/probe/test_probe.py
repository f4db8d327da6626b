"""Layouts that are hard to find, that change, or that cannot be found."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm import LayoutError, SiteLayout

from .. import models
from ..forced_rates import check_every_site
from ..models import CHANNELS, attached, windows


class Queries(nn.Module):
    """A learned query table, expanded over the batch, drops before it meets a window."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(5, 8))
        self.drop = nn.Dropout(0.1)
        self.embed = nn.Linear(CHANNELS, 8)
        self.attention = nn.MultiheadAttention(8, 1, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        query = self.drop(self.queries.expand(len(x), -1, -1))
        return self.head(self.attention(query, h, h)[0])


def test_a_site_that_no_window_moves_stays_ordinary_unless_its_layout_is_stated() -> None:
    with pytest.warns(sacm.SACMWarning, match="no dropout to make adaptive"):
        (site,) = attached(Queries()).sites
    assert site.reason.startswith("depends on no window")
    layout = SiteLayout(0)
    assert attached(Queries(), site_layouts={"drop": layout}).sites[0].layout == layout


def test_a_model_may_state_the_layouts_of_its_sites() -> None:
    class Unreadable(nn.Module):
        """A table no window moves, in front of a result in which windows cannot be told apart."""

        def __init__(self) -> None:
            super().__init__()
            self.sacm_layouts = {"drop": SiteLayout(0), "mixed": SiteLayout(0)}
            self.table = nn.Parameter(torch.randn(CHANNELS))
            self.drop, self.mixed = nn.Dropout(0.1), nn.Dropout(0.1)

        def forward(self, x: Tensor) -> Tensor:
            weights = self.drop(self.table.expand(len(x), -1))
            mixed = self.mixed(x + x.flip(0))
            return (mixed * weights[:, None]).sum()

    modulator = attached(Unreadable())
    assert [site.layout for site in modulator.sites] == [SiteLayout(0)] * 2
    silent = Unreadable()
    silent.sacm_layouts = {}
    with pytest.raises(LayoutError, match="mixes the rows"):
        attached(silent)


def test_a_choice_made_for_the_whole_batch_does_not_hide_whose_a_row_is() -> None:
    """The strongest lag of the batch's mean spectrum: one window, changed, may move them all."""

    class BatchChoice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.drop = nn.Linear(CHANNELS, 16), nn.Dropout(0.1)

        def forward(self, x: Tensor) -> Tensor:
            strength = torch.fft.rfft(x, dim=1).abs().mean(dim=(0, 2))
            lag = int(strength[1:].argmax()) + 1
            return self.drop(self.linear(x).roll(lag, dims=1)[:, : 16 - lag])

    torch.manual_seed(0)
    found = set()
    for seed in range(6):
        modulator = attached(BatchChoice(), windows(seed=seed))
        found.add(modulator.sites[0].layout)
    assert found == {SiteLayout(0)}


class Shared(nn.Module):
    """One dropout, called time-first and batch-first."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(CHANNELS, 20), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.linear(x).transpose(0, 1))  # [L, B, 20]
        return self.drop(h.transpose(0, 1))  # [B, L, 20]


@pytest.mark.parametrize("length", [3, 7, 16])
def test_one_site_called_in_two_layouts(length: int) -> None:
    """Length 3 has the same shape in both at the probe's batch of three."""
    torch.manual_seed(0)
    model = Shared()
    modulator = attached(model, windows(6, length=length))
    assert modulator.sites[0].layout == (SiteLayout(1), SiteLayout(0))
    check_every_site(model, modulator, model, windows(5, length=length))


def test_a_path_taken_in_training_only_is_found_when_layouts_are_verified() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(CHANNELS, 30)
            self.always, self.training_only = nn.Dropout(0.1), nn.Dropout(0.1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.always(self.linear(x))
            if self.training:
                h = self.training_only(h.transpose(0, 1)).transpose(0, 1)
            return h

    torch.manual_seed(0)
    model = Late()
    modulator = attached(model)
    assert [site.reached for site in modulator.sites] == [True, True]
    model(windows())
    assert [site.layout for site in modulator.sites] == [SiteLayout(0), SiteLayout(1)]
    check_every_site(model, modulator, model, windows())


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_the_probe_needs_no_certain_batch_size(batch: int) -> None:
    torch.manual_seed(0)
    model = models.BatchMinor()
    modulator = attached(model, windows(batch))
    assert modulator.sites[0].layout == SiteLayout(0, CHANNELS, batch_major=False)


def test_constant_and_missing_windows_can_be_probed() -> None:
    for fill in (0.0, 7.0, torch.nan):
        modulator = attached(models.MLP(), torch.full((4, 16, CHANNELS), fill))
        assert [site.layout for site in modulator.sites] == [SiteLayout(0)] * 2


class Masked(nn.Module):
    """Arguments beside the window: marks of every step go with the batch, a mask does not."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(CHANNELS + 2, 8), nn.Dropout(0.1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor, marks: Tensor, mask: Tensor) -> Tensor:
        h = self.drop(self.embed(torch.cat([x, marks], dim=2)))
        return self.attention(h, h, h, attn_mask=mask)[0]


@pytest.mark.parametrize("batch", [6, 16], ids=["another size", "as many windows as steps"])
def test_an_argument_as_long_as_the_batch_need_not_go_with_it(batch: int) -> None:
    torch.manual_seed(0)
    model, x = Masked(), windows(batch, length=16)
    marks, mask = torch.rand(batch, 16, 2), torch.ones(16, 16, dtype=torch.bool).triu(1)
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=(x, marks, mask))
    assert modulator.sites[0].layout == SiteLayout(0)
    model(x, marks, mask).sum().backward()
