"""Find the dropout modules of a model: which become adaptive, which stay ordinary and why.

Dropout classes of other libraries (`DropPath`, `StochasticDepth`, `LockedDropout`) have no common
base class. They are recognised by what they do: in training they multiply the activation by a
random mask of 0 and `1 / (1 - p)`, with one mask entry for a whole row or feature map; in
evaluation they change nothing. That is tried out on a tensor of ones.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout
from sacm.inject.probe.run import restored_afterwards, seed_all_generators
from sacm.inject.sites import ADAPTIVE, FROZEN, ORIGINAL, SKIPPED, Site

_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_SIZE = 16  # of every dimension of the ones: chance makes 16 rows alike once in 32768 times
_RATE, _SEEDS = 0.5, 16
_NAMES = ("drop", "stochasticdepth")


def discover(
    model: nn.Module, skip: Sequence[str] = (), *, everywhere: bool = False
) -> dict[nn.Module, Site]:
    """Return every dropout module with its site, adaptive or with the reason why not."""
    names = collect_names(model)
    skipped = set(match_modules(names, skip, "skip"))
    sites: dict[nn.Module, Site] = {}
    for module, aliases in names.items():
        site = _classify(module, aliases[0], everywhere)
        if site is None:
            continue
        if site.adaptive and len(aliases) > 1:
            site.reason = f"tied: also {', '.join(aliases[1:])}"
        if site.adaptive and module in skipped:
            site.leave_ordinary(SKIPPED)
        elif site.adaptive and all(_is_frozen(model, alias) for alias in aliases):
            site.leave_ordinary(FROZEN)
        sites[module] = site
    return sites


def collect_names(model: nn.Module) -> dict[nn.Module, list[str]]:
    """Return all names of every module; a tied module has several."""
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    return names


def match_modules(
    names: Mapping[nn.Module, list[str]], globs: Iterable[str], argument: str
) -> list[nn.Module]:
    """Return the modules whose name matches one of the globs; each glob must match some."""
    matched: dict[nn.Module, None] = {}
    for glob in globs:
        hits = [m for m, aliases in names.items() if any(matches(a, glob) for a in aliases)]
        if not hits:
            raise ArgumentError(f"{argument}: no module of the model matches {glob!r}.")
        matched.update(dict.fromkeys(hits))
    return list(matched)


def assign_layouts(sites: Sequence[Site], stated: Mapping[str, SiteLayout]) -> None:
    """Give the layouts that a user stated, by name or glob, to their sites."""
    check_matches(sites, stated, "site_layouts")
    for glob, layout in stated.items():
        for site in sites:
            if matches(site.name, glob):
                site.stated = layout


def check_matches(sites: Sequence[Site], globs: Iterable[str], argument: str) -> None:
    """Raise an ArgumentError if a name or glob matches no site."""
    for glob in globs:
        if not any(matches(site.name, glob) for site in sites):
            names = ", ".join(site.name for site in sites) or "none"
            raise ArgumentError(f"{argument}: no dropout site matches {glob!r}; sites: {names}.")


def matches(name: str, glob: str) -> bool:
    """Return whether a glob matches; the brackets of `attention:dropout[1]` may be literal."""
    return name == glob or fnmatch.fnmatchcase(name, glob)


def _classify(module: nn.Module, name: str, everywhere: bool) -> Site | None:
    """Return the site of a module that drops; None for all other modules."""
    kind = type(module).__name__
    reason = None
    if type(module) in ORIGINAL:
        reason = "belongs to another modulator"
    elif isinstance(module, tuple(ADAPTIVE)):
        reason = ""  # the dropping calls of a subclass are intercepted
    elif isinstance(module, torch.jit.ScriptModule):
        if "Dropout" in module.original_name:
            reason = "not covered: compiled by torch.jit.script"
    elif isinstance(module, _RECURRENT) and module.dropout:
        reason = _why_not_unrolled(module, everywhere)
    elif _is_named_like_dropout(module):
        shared = find_shared_dims(module, 3)
        reason = "" if shared is not None else "not covered: a dropout class of its own"
        if shared is not None and len(shared) == 3:
            reason = "shared by all windows: one decision for the whole batch"
    return None if reason is None else Site(name, kind, adaptive=not reason, reason=reason)


def _why_not_unrolled(module: nn.RNNBase, everywhere: bool) -> str:
    """Return why the dropout between recurrent layers stays ordinary; empty if it need not."""
    if module.num_layers == 1:
        return "no effect: one layer has no dropout between layers"
    if type(module).forward not in [kind.forward for kind in _RECURRENT]:
        return "not covered: a recurrent class with a forward of its own"
    if everywhere:
        return ""
    return (
        "not covered: drops inside a fused recurrent kernel; coverage='all' runs its layers one "
        "by one"
    )


def _is_frozen(model: nn.Module, name: str) -> bool:
    """Return whether the nearest ancestor that owns parameters has none that is trained."""
    while name:
        name = name.rpartition(".")[0]
        parameters = list(model.get_submodule(name).parameters())
        if parameters:
            return not any(p.requires_grad for p in parameters)
    return False


def _is_named_like_dropout(module: nn.Module) -> bool:
    """Return whether a layer without children or parameters has a class named after dropping."""
    name = type(module).__name__.lower()
    if not any(part in name for part in _NAMES):
        return False
    return next(module.parameters(), None) is None and not any(module.children())


def find_shared_dims(
    module: nn.Module, dims: int, forward: Callable[[Tensor], Any] | None = None
) -> tuple[int, ...] | None:
    """Return the dimensions along which the module draws one mask entry for all.

    Args:
        module: A dropout layer of any class.
        dims: Number of dimensions of its input.
        forward: Its own forward, if a stand-in has taken the place of that.

    Returns:
        For `DropPath` and an input `[B, L, D]` it is ``(1, 2)``. None if the module is no inverted
        dropout: it does not drop, does not rescale, or is not idle in evaluation.
    """
    expected = {0.0, 1 / (1 - _RATE)}
    for name, value in vars(module).items():
        is_rate = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
        if name.startswith("_") or not (is_rate or value is None):
            continue
        seen: set[float] = set()
        for seed in range(_SEEDS):  # one is enough, unless all entries share a single decision
            out = _try_out(module, name, dims, seed, forward or module.forward)
            seen |= set() if out is None else set(out.unique().tolist())
            if out is None or not seen <= expected:
                break
            if seen == expected:
                return tuple(d for d in range(dims) if bool((out == out.narrow(d, 0, 1)).all()))
    return None


def _try_out(
    module: nn.Module, rate_name: str, dims: int, seed: int, forward: Callable[[Tensor], Any]
) -> Tensor | None:
    """Return what ones become in training at a rate of one half; None if evaluation is not idle."""
    ones = torch.ones((_SIZE,) * dims)
    with restored_afterwards(module):
        seed_all_generators(seed)
        vars(module)[rate_name] = _RATE
        try:
            module.training = False
            idle = forward(ones.clone())
            module.training = True
            out = forward(ones.clone())
        except Exception:  # whatever a class raises that expects something else
            return None
    fits = isinstance(out, Tensor) and out.shape == ones.shape
    return out if fits and isinstance(idle, Tensor) and torch.equal(idle, ones) else None
