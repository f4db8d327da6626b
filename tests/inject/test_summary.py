from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm

from . import models
from .models import CHANNELS, windows


class Sampler(nn.Module):
    """Drops in evaluation too."""

    def forward(self, h: Tensor) -> Tensor:
        return F.dropout(h, 0.5)


class Zoo(nn.Module):
    """Everything a summary has to speak of."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(CHANNELS, 8)
        self.dead = nn.Dropout(0.1)
        self.shared = nn.Dropout(0.1)
        self.alias = self.shared
        self.frozen = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)).requires_grad_(False)
        self.recurrent = nn.LSTM(8, 8, num_layers=2, dropout=0.2, batch_first=True)
        self.alpha = nn.AlphaDropout(0.1)
        self.inner = nn.ModuleDict({"sampler": Sampler()})
        self.head = nn.Sequential(nn.Linear(8, 2), nn.Dropout(0.0))

    def forward(self, x: Tensor) -> Tensor:
        h = self.shared(self.embed(x))
        h = h + self.frozen(h.detach())
        h = self.alpha(self.alias(self.recurrent(h)[0]))
        return self.head(self.inner["sampler"](h))


@pytest.fixture
def zoo() -> tuple[sacm.CapacityModulator, list[warnings.WarningMessage]]:
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        modulator = sacm.attach(Zoo(), channels=CHANNELS, example_inputs=windows())
    return modulator, caught


def line_of(summary: str, name: str) -> str:
    found = [line for line in summary.splitlines() if line.split()[:1] == [name]]
    assert len(found) == 1, name
    return found[0]


@pytest.mark.parametrize(
    ("path", "adaptive", "says"),
    [
        ("dead", "yes", "unreached: declared but never called"),
        ("shared", "yes", "tied: also alias; live"),
        ("frozen.1", "no", "frozen: nothing around it is trained"),
        ("recurrent", "no", "not covered: drops inside a fused recurrent kernel"),
        ("alpha", "no", "not covered: a dropout class of its own"),
        ("head.1", "yes", "dim 0 = B"),
    ],
)
def test_every_kind_of_site_is_described_with_its_path(
    zoo: tuple[sacm.CapacityModulator, object], path: str, adaptive: str, says: str
) -> None:
    line = line_of(str(zoo[0].summary()), path)
    assert f" {adaptive} " in line
    assert says in line


def test_the_count_of_sites_and_scalars_is_told(zoo: tuple[sacm.CapacityModulator, object]) -> None:
    expected = f"3 of 6 dropout sites adaptive, {2 * CHANNELS + 2} scalars added."
    assert expected in str(zoo[0].summary())


def test_before_the_probe_the_summary_says_that_it_is_to_come() -> None:
    model = models.MLP()
    modulator = sacm.attach(model, channels=CHANNELS)
    assert "not probed yet" in str(modulator.summary())
    assert all(site.reached is None for site in modulator.sites)
    model(windows())
    assert "not probed yet" not in str(modulator.summary())
    assert all(site.reached for site in modulator.sites)


def test_nothing_is_added_where_nothing_can_be_covered() -> None:
    model = nn.LSTM(CHANNELS, 4, num_layers=2, dropout=0.1, batch_first=True)
    with pytest.warns(sacm.SACMWarning, match="no dropout to make adaptive"):
        modulator = sacm.attach(model, channels=CHANNELS)
    assert "0 of 1 dropout sites adaptive, 0 scalars added." in str(modulator.summary())


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_dropout_is_named() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2)))
    model = nn.Sequential(nn.Linear(CHANNELS, 8), nn.Dropout(0.1), scripted)
    modulator = sacm.attach(model, example_inputs=windows())
    assert "not covered" in line_of(modulator.summary(), "2.1")


def test_a_tied_site_that_is_not_covered_keeps_its_reason() -> None:
    shared = nn.LSTM(CHANNELS, CHANNELS, num_layers=2, dropout=0.1, batch_first=True)
    model = nn.ModuleDict({"a": shared, "b": shared, "c": nn.Dropout(0.1)})
    model.extra = nn.Linear(2, 2)
    modulator = sacm.attach(model, channels=CHANNELS)
    assert "not covered" in line_of(str(modulator.summary()), "a")
