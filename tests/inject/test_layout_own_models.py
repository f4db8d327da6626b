"""At every site of every kind of model, a window's rate acts on its own activations alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sacm
from sacm import SiteLayout

from . import models
from .forced_rates import check_every_site
from .models import CHANNELS, LENGTH, attached, windows

HEADS = 2


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 9, 16])
def test_a_layout_found_once_serves_every_batch_size(batch: int) -> None:
    """Also L = B and L a multiple of B, where shapes alone would mislead."""
    torch.manual_seed(0)
    for make in (models.BatchMinor, lambda: models.Encoder(batch_first=False)):
        model = make()
        modulator = attached(model, windows(5))
        if batch == 1:
            model.train()
            assert model(windows(1)).isfinite().all()
        else:
            check_every_site(model, modulator, model, windows(batch))


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention(need_weights: bool) -> None:
    torch.manual_seed(0)
    model, x = models.Attention(need_weights=need_weights), windows()
    modulator = attached(model, x, coverage="all")
    layout = SiteLayout(0, HEADS) if need_weights else SiteLayout(0)
    assert [site.layout for site in modulator.sites] == [layout] * 2
    assert [site.name.partition(":")[0] for site in modulator.sites] == ["own", "cross"]
    check_every_site(model, modulator, model, x)


def test_scaled_dot_product_attention() -> None:
    torch.manual_seed(0)
    model, x = models.ScaledDotProduct(), windows()
    modulator = attached(model, x, coverage="all")
    assert {site.name: site.layout for site in modulator.sites} == {
        "ScaledDotProduct:attention": SiteLayout(0),
        "ScaledDotProduct:attention[1]": SiteLayout(0, HEADS),
    }
    check_every_site(model, modulator, model, x)


def test_functional_dropout() -> None:
    torch.manual_seed(0)
    model, x = models.Functional(), windows()
    modulator = attached(model, x, coverage="all")
    assert {site.name: site.layout for site in modulator.sites} == {
        "Functional:dropout": SiteLayout(0),
        "Functional:dropout[1]": SiteLayout(0, LENGTH),
        "Functional:dropout1d": SiteLayout(0),
        "block:dropout": SiteLayout(0),
    }
    check_every_site(model, modulator, model, x)


def test_channel_first_windows() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(CHANNELS, 24, 3), nn.Dropout1d(0.1), nn.Flatten())
    x = windows().transpose(1, 2)
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=x, window_layout="BCL")
    check_every_site(model, modulator, model, x)
    scores = sacm.SpectralScorer(CHANNELS)(windows()).scores
    model.train()(x)
    torch.testing.assert_close(modulator.scores, scores.detach())
