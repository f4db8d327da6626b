"""Find the dropout modules of a model: which become adaptive, which stay ordinary and why."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout
from sacm.inject.sites import ADAPTIVE, ORIGINAL, SKIPPED, Site

_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_ALPHA = (nn.AlphaDropout, nn.FeatureAlphaDropout)
FROZEN = "frozen: nothing around it is trained"


def discover(model: nn.Module, skip: Sequence[str]) -> dict[nn.Module, Site]:
    """Return every dropout module with its site, adaptive or with the reason why not."""
    names = collect_names(model)
    skipped = set(match_modules(names, skip, "skip"))
    found: dict[nn.Module, Site] = {}
    for module, aliases in names.items():
        site = _classify(module, aliases[0])
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


def _classify(module: nn.Module, name: str) -> Site | None:
    """Return the site of a module that drops; None for all other modules."""
    kind = type(module).__name__
    if type(module) in ADAPTIVE:
        return Site(name, kind)
    if type(module) in ORIGINAL:
        return Site(name, kind, adaptive=False, reason="belongs to another modulator")
    if isinstance(module, _RECURRENT):
        if module.dropout == 0:
            return None
        reason = "drops inside a fused recurrent kernel, which cannot be reached"
    elif isinstance(module, _ALPHA):
        reason = "alpha dropout keeps mean and variance by its own formula"
    elif isinstance(module, tuple(ADAPTIVE)):  # a subclass: its dropping calls are intercepted
        return Site(name, kind)
    elif isinstance(module, torch.jit.ScriptModule) and "Dropout" in module.original_name:
        reason = "compiled by torch.jit.script"
    elif _drops_by_name(module):
        reason = "a dropout class of its own"
    else:
        return None
    return Site(name, kind, adaptive=False, reason=f"not covered: {reason}")


def _drops_by_name(module: nn.Module) -> bool:
    """True for third-party layers (DropPath, VariationalDropout …), known by their class name."""
    return "drop" in type(module).__name__.lower() and not any(module.children())


def _is_frozen(model: nn.Module, name: str) -> bool:
    """Return whether the nearest ancestor that owns parameters has none that is trained."""
    while name:
        name = name.rpartition(".")[0]
        parameters = list(model.get_submodule(name).parameters())
        if parameters:
            return not any(p.requires_grad for p in parameters)
    return False
