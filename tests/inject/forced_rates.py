"""Does every site of a model know whose activations it holds?

One window gets the rate 0 and all others 0.9. Whose an entry is, is found here without the
library's help: at the real batch size, in training mode with all rates at 0, every window is
disturbed in turn, and an entry belongs to the one that moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from sacm import CapacityModulator
from sacm.inject.sites import Site

Calls = dict[str, list[tuple[Tensor, Tensor]]]  # site to (input, output) of each of its calls
RATE = 0.9


@contextmanager
def watched(modulator: CapacityModulator) -> Iterator[Calls]:
    """Inputs and outputs of every site, at its drop."""
    calls: Calls = {}

    def note(site: Site, h: Tensor, out: Tensor) -> None:
        calls.setdefault(site.name, []).append((h.detach().clone(), out.detach().clone()))

    with ExitStack() as stack:
        for site in modulator.sites:
            stack.enter_context(_drop_watched(site, note))
        yield calls


@contextmanager
def _drop_watched(site: Site, note: Callable[[Site, Tensor, Tensor], None]) -> Iterator[None]:
    original = site.drop

    def drop(h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        out = original(h, mask_shape)
        note(site, h, out)
        return out

    site.drop = drop
    try:
        yield
    finally:
        del site.drop


def check_every_site(
    model: nn.Module,
    modulator: CapacityModulator,
    run: Callable[[Tensor], object],
    x: Tensor,
    *,
    samples: Sequence[int] = (0, 1, -1),
) -> set[str]:
    """Assert that a window's rate acts on its own activations alone; returns the sites checked.

    `run` calls the attached model on windows `[B, …]`.
    """
    _train_with_still_norms(model)
    run(x)  # what is new to the model, it probes before anything is noted
    live = {site.name for site in modulator.sites if site.adaptive and site.reached}
    checked: set[str] = set()
    for seed in range(10):  # a model that leaves out layers at random shows them all in a few runs
        owners = _owners(modulator, run, x, seed)
        for sample in samples:
            rates = torch.full((len(x),), RATE)
            rates[sample] = 0.0
            torch.manual_seed(seed)
            with watched(modulator) as calls, modulator.forced_rates(rates), torch.no_grad():
                run(x)
            for name, pairs in calls.items():
                for (h, out), owner in zip(pairs, owners[name], strict=True):
                    _check_call(name, h, out, owner, sample % len(x), len(x))
        checked |= owners.keys()
        if checked >= live:
            break
    assert checked == live, f"never called: {live - checked}; not announced: {checked - live}"
    return checked


def _train_with_still_norms(model: nn.Module) -> None:
    """Batch statistics would mix windows, which is no site's doing."""
    model.train()
    for module in model.modules():
        if isinstance(module, _NormBase):
            module.eval()


def _owners(
    modulator: CapacityModulator,
    run: Callable[[Tensor], object],
    x: Tensor,
    seed: int,
) -> dict[str, list[Tensor]]:
    """The window that owns each entry of each call's input; -1 where that is not clear-cut."""

    def inputs(windows: Tensor) -> dict[str, list[Tensor]]:
        torch.manual_seed(seed)
        zeros = torch.zeros(len(x))
        with watched(modulator) as calls, modulator.forced_rates(zeros), torch.no_grad():
            run(windows)
        return {name: [h for h, _ in pairs] for name, pairs in calls.items()}

    base = inputs(x)
    moved = {name: [[] for _ in hs] for name, hs in base.items()}
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)) * 1e-2
    for window in range(len(x)):
        disturbed = x.clone()
        disturbed[window] += noise[window]
        for name, hs in inputs(disturbed).items():
            for into, h, h_base in zip(moved[name], hs, base[name], strict=True):
                into.append((h - h_base).abs().double())
    return {name: [_owner(torch.stack(by)) for by in calls] for name, calls in moved.items()}


def _owner(by_window: Tensor) -> Tensor:
    """`[B, …]` movements to the index of the window that moves an entry ten times any other."""
    first, second = by_window.topk(2, dim=0).values
    clear = (first > 1e-6 * first.max()) & (first >= 10 * second)
    return torch.where(clear, by_window.argmax(dim=0), -1)


def _check_call(name: str, h: Tensor, out: Tensor, owner: Tensor, sample: int, batch: int) -> None:
    own = owner == sample
    assert own.any(), f"{name}: window {sample} moves nothing of {list(h.shape)}"
    assert torch.equal(out[own], h[own]), f"{name}: window {sample} is not left alone"
    others = (owner >= 0) & ~own & (h != 0)
    kept = others & (out != 0)
    expected = torch.where(kept, h / (1 - RATE), 0.0)
    torch.testing.assert_close(out[others], expected[others], rtol=1e-4, atol=1e-6)
    if others.sum() >= 60:  # enough that chance keeps a tenth of them, not half
        assert kept.sum() < 0.5 * others.sum(), f"{name}: the other windows do not drop"
    for other in range(batch):
        entries = others & (owner == other)
        if entries.sum() >= 24:
            assert not kept[entries].all(), f"{name}: window {other} is left alone too"
