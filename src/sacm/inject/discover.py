"""Find the dropout modules of a model: which become adaptive, which stay ordinary and why."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout
from sacm.inject.recognise import find_shared_dims, is_named_like_dropout
from sacm.inject.sites import ADAPTIVE, ORIGINAL, SKIPPED, Site

_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_OWN_CLASS = "not covered: a dropout class of its own"
_WHOLE_BATCH = "shared by all windows: one decision for the whole batch"
_FUSED = (
    "not covered: drops inside a fused recurrent kernel; unroll_recurrent=True runs its layers "
    "one by one"
)
_OWN_RECURRENCE = "not covered: a recurrent class with a forward of its own"
_ONE_LAYER = "no effect: one layer has no dropout between layers"
FROZEN = "frozen: nothing around it is trained"


def discover(
    model: nn.Module, skip: Sequence[str], *, unroll_recurrent: bool = False
) -> dict[nn.Module, Site]:
    """Return every dropout module with its site, adaptive or with the reason why not."""
    names = collect_names(model)
    skipped = set(match_modules(names, skip, "skip"))
    found: dict[nn.Module, Site] = {}
    for module, aliases in names.items():
        site = _classify(module, aliases[0], unroll_recurrent)
        if site is None:
            continue
        if site.adaptive and len(aliases) > 1:
            site.reason = f"tied: also {', '.join(aliases[1:])}"
        if site.adaptive and module in skipped:
            site.leave_ordinary(SKIPPED)
        elif site.adaptive and all(_is_frozen(model, alias) for alias in aliases):
            site.leave_ordinary(FROZEN)
        found[module] = site
    return found


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
            known = ", ".join(site.name for site in sites) or "none"
            raise ArgumentError(f"{argument}: no dropout site matches {glob!r}; sites: {known}.")


def matches(name: str, glob: str) -> bool:
    """Return whether a glob matches; the brackets of `attention:dropout[1]` may be literal."""
    return name == glob or fnmatch.fnmatchcase(name, glob)


def _classify(module: nn.Module, name: str, unroll_recurrent: bool) -> Site | None:
    """Return the site of a module that drops; None for all other modules."""
    kind = type(module).__name__
    if type(module) in ADAPTIVE:
        return Site(name, kind)
    if type(module) in ORIGINAL:
        return Site(name, kind, adaptive=False, reason="belongs to another modulator")
    if isinstance(module, tuple(ADAPTIVE)):  # a subclass: its dropping calls are intercepted
        return Site(name, kind)
    if isinstance(module, torch.jit.ScriptModule):
        reason = "not covered: compiled by torch.jit.script"
        found = "Dropout" in module.original_name
        return Site(name, kind, adaptive=False, reason=reason) if found else None
    if isinstance(module, _RECURRENT) and module.dropout:
        reason = _why_not_unrolled(module, unroll_recurrent)
    elif is_named_like_dropout(module):
        reason = _why_not_recognised(module)
    else:
        return None
    return Site(name, kind, adaptive=not reason, reason=reason)


def _why_not_unrolled(module: nn.RNNBase, allowed: bool) -> str:
    """Return why the dropout between recurrent layers stays ordinary; empty if it need not."""
    if module.num_layers == 1:
        return _ONE_LAYER
    if type(module).forward not in [kind.forward for kind in _RECURRENT]:
        return _OWN_RECURRENCE
    return "" if allowed else _FUSED


def _why_not_recognised(module: nn.Module) -> str:
    """Return why a dropout class of others stays ordinary; empty if it need not."""
    shared = find_shared_dims(module, 3)
    if shared is None:
        return _OWN_CLASS
    return _WHOLE_BATCH if len(shared) == 3 else ""


def _is_frozen(model: nn.Module, name: str) -> bool:
    """Return whether the nearest ancestor that owns parameters has none that is trained."""
    while name:
        name = name.rpartition(".")[0]
        parameters = list(model.get_submodule(name).parameters())
        if parameters:
            return not any(p.requires_grad for p in parameters)
    return False
