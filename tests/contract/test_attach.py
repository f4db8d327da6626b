"""`sacm.attach` on every network: all sites adaptive, each window at its own rate."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import sacm

from .cases import Case, assert_close, dropouts, evaluate, every_case, make, training_loss, windows

RATES = torch.tensor([0.0, 0.2, 0.5, 0.8])
EDGES = {"one channel": (96, 1), "short": (24, 3), "one short channel": (24, 1)}


@every_case
def test_all_sites_are_adaptive_as_stated(case: Case) -> None:
    model = make(case)
    before = sum(p.numel() for p in model.parameters())
    modulator = sacm.attach(model, channels=3, example_inputs=windows(4))
    assert all(site.adaptive and site.reached for site in modulator.sites)
    assert {site.name: site.layout for site in modulator.sites} == model.sacm_layouts
    assert sum(p.numel() for p in model.parameters()) == before + 2 * 3 + 2


@every_case
def test_the_probe_finds_what_the_network_states(case: Case) -> None:
    model = make(case)
    stated, model.sacm_layouts = model.sacm_layouts, {}
    modulator = sacm.attach(model, channels=3, example_inputs=windows(4))
    assert {site.name: site.layout for site in modulator.sites} == stated


@every_case
@pytest.mark.parametrize("edge", EDGES)
def test_sites_that_no_window_moves(case: Case, edge: str) -> None:
    length, channels = EDGES[edge]
    model = make(case, length=length, channels=channels)
    x = windows(4, length=length, channels=channels)
    modulator = sacm.attach(model, channels=channels, example_inputs=x)
    assert {site.name: site.layout for site in modulator.sites} == model.sacm_layouts
    training_loss(model, x).backward()


class Ledger:
    """What a site did to each window's rows: non-zero entries seen, and dropped."""

    def __init__(self, fold: int) -> None:
        self.fold = fold
        self.seen = torch.zeros(len(RATES))
        self.dropped = torch.zeros(len(RATES))

    def __call__(self, _: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        before = inputs[0].detach().unflatten(0, (-1, self.fold)).flatten(1)  # [B, entries]
        after = output.detach().unflatten(0, (-1, self.fold)).flatten(1)
        counted, kept = before != 0, after != 0
        self.seen += counted.sum(dim=1)
        self.dropped += (counted & ~kept).sum(dim=1)
        expected = torch.where(kept, before / (1 - RATES[:, None]), 0.0)
        torch.testing.assert_close(after, expected, atol=1e-6, rtol=1e-5)


@every_case
def test_forced_rates_hold_at_every_site(case: Case) -> None:
    model = make(case)
    x = windows(4)
    modulator = sacm.attach(model, channels=3, example_inputs=x)
    ledgers = {}
    for name, module in dropouts(model).items():
        ledgers[name] = Ledger(model.sacm_layouts[name].fold)
        module.register_forward_hook(ledgers[name])
    torch.manual_seed(0)
    with modulator.forced_rates(RATES), torch.no_grad():
        for _ in range(8):
            training_loss(model, x)
    for name, ledger in ledgers.items():
        assert ledger.dropped[0] == 0, name
        for rate, seen, dropped in zip(RATES, ledger.seen, ledger.dropped, strict=True):
            spread = math.sqrt(float(rate * (1 - rate) / seen))
            assert seen > 0, name
            assert abs(float(dropped / seen - rate)) <= 5 * spread, (name, float(rate))


@every_case
def test_attached_training_reaches_the_modulator_and_evaluation_is_untouched(case: Case) -> None:
    model = make(case)
    x = windows(6)
    raw = evaluate(model, x)
    keys = list(model.state_dict())
    modulator = sacm.attach(model, channels=3, example_inputs=x)
    assert_close(evaluate(model, x), raw, tolerance=0.0)

    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training_loss(model, x).backward()
    optimizer.step()  # MiniROCKET's head starts at zero and lets nothing through before this
    optimizer.zero_grad()
    training_loss(model, x).backward()
    gradients = [p.grad for p in modulator.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)
    assert any(bool(g.abs().max() > 0) for g in gradients if g is not None)

    sacm.detach(model)
    assert list(model.state_dict()) == keys
