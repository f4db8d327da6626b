"""One rate a channel, where activations keep channels apart."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm import backbones
from sacm.core.dropout import Keep, apply_mask
from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout

RATES = torch.tensor([[0.1, 0.5, 0.8], [0.6, 0.2, 0.4]])


class Apart(nn.Module):
    """Channels stay apart at `apart`, mix at `mixed`, and are folded into the batch at `folded`."""

    def __init__(self) -> None:
        super().__init__()
        self.folded, self.apart, self.mixed = nn.Dropout(0.1), nn.Dropout(0.1), nn.Dropout(0.1)
        self.time, self.channel = nn.Linear(8, 400), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.time(x.transpose(1, 2))  # [B, C, d]
        h = self.folded(h.flatten(0, 1)).view(h.shape)
        h = self.apart(h).transpose(1, 2)
        return self.mixed(self.channel(h))


def test_sites_that_keep_channels_apart_are_found() -> None:
    model = Apart()
    modulator = sacm.attach(model, channels=3, per_channel=True)
    model(torch.randn(4, 8, 3))
    dims = {site.name: site.channel_dim for site in modulator.sites}
    assert dims == {"folded": 1, "apart": 1, "mixed": None}
    assert modulator.rates is not None
    assert modulator.rates.shape == (4,)
    assert modulator.state.channel_rates.shape == (4, 3)


def test_patchtst_keeps_channels_apart_everywhere_and_itransformer_mixes_them() -> None:
    sizes = {"channels": 3, "size": "small", "input_len": 48, "horizon": 8}
    found = {}
    for name in ("PatchTST", "iTransformer"):
        model = backbones.build(name, "forecasting", **sizes)
        modulator = sacm.attach(model, channels=3, per_channel=True)
        model.train()(torch.randn(4, 48, 3))
        found[name] = [site.channel_dim is not None for site in modulator.sites if site.reached]
    assert all(found["PatchTST"])
    assert not all(found["iTransformer"])


@pytest.mark.parametrize(
    ("layout", "shape", "channel_dim"),
    [
        (SiteLayout(dim=0, fold=3), (6, 4000), 1),
        (SiteLayout(dim=0, fold=3, batch_major=False), (6, 4000), 0),
        (SiteLayout(dim=1), (3, 2, 4000), 0),
        (SiteLayout(dim=0), (2, 4000, 3), 2),
    ],
)
def test_every_channel_drops_at_its_own_rate(
    layout: SiteLayout, shape: tuple[int, ...], channel_dim: int
) -> None:
    torch.manual_seed(0)
    dropped = layout.drop_channels(torch.ones(shape), Keep.of(1 - RATES), channel_dim)
    split, position = layout.unfold(shape, 2)
    order = [
        position,
        channel_dim,
        *(d for d in range(len(split)) if d not in (position, channel_dim)),
    ]
    kept = (dropped != 0).float().view(split).permute(order).flatten(2).mean(dim=2)  # [B, C]
    torch.testing.assert_close(kept, 1 - RATES, rtol=0, atol=0.03)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.03)


def test_gradients_reach_the_rates_of_the_channels() -> None:
    rates = RATES.double().requires_grad_()
    h = torch.randn(6, 50, dtype=torch.float64, requires_grad=True)
    layout = SiteLayout(dim=0, fold=3)
    torch.manual_seed(0)
    out = layout.drop_channels(h, Keep.of(1 - rates), 1)
    out.sum().backward()
    assert rates.grad is not None
    flat = (1 - RATES.double()).view(6).requires_grad_()
    mask = (out != 0).detach()
    again = apply_mask(h.detach(), Keep.of(flat).along(0, 2), mask)
    again.sum().backward()
    assert flat.grad is not None
    torch.testing.assert_close(rates.grad.view(6), -flat.grad)


def test_a_scorer_without_channels_is_refused() -> None:
    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mean(dim=(1, 2))

    model = Apart()
    sacm.attach(model, channels=3, per_channel=True, scorer=Mean())
    with pytest.raises(ArgumentError, match="channel_scores"):
        model(torch.randn(4, 8, 3))
