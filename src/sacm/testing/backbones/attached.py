"""`sacm.attach` on a network: all sites adaptive, each window at its own rate."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from sacm.inject.attach import attach, detach
from sacm.testing.case import (
    BackboneCase,
    are_close,
    dropouts,
    evaluate_network,
    make,
    training_loss,
    windows,
)

RATES = torch.tensor([0.0, 0.2, 0.5, 0.8])
EDGES = {"one channel": (96, 1), "short": (24, 3), "one short channel": (24, 1)}


def layouts_are_stated_and_fit(case: BackboneCase) -> None:
    """Every dropout site states which rows belong to which window, for any batch."""
    model = make(case)
    sites = dropouts(model)
    case.require(sites, "the network has no nn.Dropout, so there is nothing to adapt")
    stated = set(model.sacm_layouts) == set(sites)
    case.require(stated, "call self.state_layouts() at the end of __init__, for all its dropouts")
    for layout in model.sacm_layouts.values():
        first = layout.dim == 0 and layout.batch_major
        case.require(first, "the batch must be the slowest part of dimension 0 at every dropout")
    seen: dict[str, set[int]] = {}
    for batch in (1, 5):
        handles = [
            _watch(case, name, module, model.sacm_layouts[name].fold, batch, seen)
            for name, module in sites.items()
        ]
        training_loss(model, windows(batch))
        for handle in handles:
            handle.remove()
    for name in sites:
        case.require(seen.get(name) == {1, 5}, f"the dropout {name} is not used in training")


def _watch(
    case: BackboneCase,
    name: str,
    module: nn.Module,
    fold: int,
    batch: int,
    seen: dict[str, set[int]],
) -> RemovableHandle:
    """Compare the rows that reach a site with those its layout states."""

    def hook(_: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
        rows = len(inputs[0])
        case.require(
            rows == batch * fold, f"{name} has {rows} rows for {batch} windows at fold {fold}"
        )
        seen.setdefault(name, set()).add(batch)

    return module.register_forward_hook(hook)


def every_site_becomes_adaptive(case: BackboneCase) -> None:
    """`attach` makes every site adaptive, as stated, and adds 2C + 2 scalars."""
    model = make(case)
    before = sum(p.numel() for p in model.parameters())
    modulator = attach(model, channels=3, example_inputs=windows(4))
    for site in modulator.sites:
        case.require(site.adaptive and site.reached, f"{site.name} is not adaptive: {site.reason}")
    found = {site.name: site.layout for site in modulator.sites}
    case.require(found == model.sacm_layouts, "attach found other sites than the network states")
    added = sum(p.numel() for p in model.parameters()) - before
    case.require(added == 2 * 3 + 2, f"attach added {added} scalars instead of 8")


def the_probe_finds_the_stated_layouts(case: BackboneCase) -> None:
    """Without the statement, the layout probe comes to the same result."""
    model = make(case)
    stated, model.sacm_layouts = model.sacm_layouts, {}
    modulator = attach(model, channels=3, example_inputs=windows(4))
    found = {site.name: site.layout for site in modulator.sites}
    case.require(found == stated, f"the probe finds {found}, the network states {stated}")


def small_windows_can_be_attached(case: BackboneCase) -> None:
    """One channel and short windows leave some sites unmoved by any window."""
    for name, (length, channels) in EDGES.items():
        model = make(case, length=length, channels=channels)
        x = windows(4, length=length, channels=channels)
        modulator = attach(model, channels=channels, example_inputs=x)
        found = {site.name: site.layout for site in modulator.sites}
        case.require(found == model.sacm_layouts, f"attach found other layouts ({name})")
        training_loss(model, x).backward()


class _Ledger:
    """What a site did to each window's rows: non-zero entries seen, and dropped."""

    def __init__(self, fold: int) -> None:
        self.fold = fold
        self.seen = torch.zeros(len(RATES))
        self.dropped = torch.zeros(len(RATES))
        self.scaled = True  # what stays is divided by its window's share

    def __call__(self, _: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        before = inputs[0].detach().unflatten(0, (-1, self.fold)).flatten(1)  # [B, entries]
        after = output.detach().unflatten(0, (-1, self.fold)).flatten(1)
        counted, kept = before != 0, after != 0
        self.seen += counted.sum(dim=1)
        self.dropped += (counted & ~kept).sum(dim=1)
        expected = torch.where(kept, before / (1 - RATES[:, None]), 0.0)
        self.scaled &= torch.allclose(after, expected, atol=1e-6, rtol=1e-5)


def each_window_has_its_own_rate(case: BackboneCase) -> None:
    """At every site a window loses the share of entries that its rate says."""
    model = make(case)
    x = windows(4)
    modulator = attach(model, channels=3, example_inputs=x)
    ledgers = {}
    for name, module in dropouts(model).items():
        ledgers[name] = _Ledger(model.sacm_layouts[name].fold)
        module.register_forward_hook(ledgers[name])
    torch.manual_seed(0)
    with modulator.forced_rates(RATES), torch.no_grad():
        for _ in range(8):
            training_loss(model, x)
    for name, ledger in ledgers.items():
        case.require(ledger.scaled, f"{name} does not scale what it keeps")
        case.require(ledger.dropped[0] == 0, f"{name} drops entries of a window at rate 0")
        for rate, seen, dropped in zip(RATES, ledger.seen, ledger.dropped, strict=True):
            case.require(seen > 0, f"{name} sees nothing but zeros")
            spread = math.sqrt(float(rate * (1 - rate) / seen))
            near = abs(float(dropped / seen - rate)) <= 5 * spread
            case.require(near, f"{name} drops {float(dropped / seen):.3f} at rate {rate:.1f}")


def attached_training_works_and_evaluation_is_untouched(case: BackboneCase) -> None:
    """Gradients reach the modulator, evaluation stays equal, `detach` gives the keys back."""
    model = make(case)
    x = windows(6)
    raw = evaluate_network(model, x)
    keys = list(model.state_dict())
    modulator = attach(model, channels=3, example_inputs=x)
    same = are_close(evaluate_network(model, x), raw, tolerance=0.0)
    case.require(same, "attach changes the evaluation")

    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training_loss(model, x).backward()
    optimizer.step()  # a head that starts at zero lets nothing through before this
    optimizer.zero_grad()
    training_loss(model, x).backward()
    gradients = [p.grad for p in modulator.parameters()]
    finite = all(g is not None and g.isfinite().all() for g in gradients)
    case.require(finite, "gradients of the modulator are missing or not finite")
    reached = any(bool(g.abs().max() > 0) for g in gradients if g is not None)
    case.require(reached, "no gradient reaches the modulator")

    detach(model)
    case.require(list(model.state_dict()) == keys, "detach does not give the state dict back")
