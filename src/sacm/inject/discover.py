"""Find the dropout of a model: which becomes adaptive, which stays ordinary and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from sacm.errors import ArgumentError
from sacm.inject.handlers import DROPOUTS, Handler, drop_between_layers
from sacm.inject.sites import ModulationState, Site, SiteLayout
from sacm.inject.stand_ins import (
    SKIPPED,
    Coverage,
    Shared,
    StandIn,
    check_matches,
    drop_module,
    matches,
)

FROZEN = "frozen: nothing around it is trained"
_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_NAMES = ("drop", "stochasticdepth")


def discover(
    model: nn.Module,
    state: ModulationState,
    *,
    everywhere: bool,
    skip: Sequence[str],
    insert_after: Sequence[str],
    stated: Mapping[str, SiteLayout],
) -> Coverage:
    """Find the sites of a model and make their stand-ins; the model is not changed.

    Sites of functional calls carry a colon in their name and show themselves to the probe only.
    """
    functional = [glob for glob in (*skip, *stated) if ":" in glob]
    if functional and not everywhere:
        raise ArgumentError(
            f"skip or site_layouts: {functional[0]!r} names a functional dropout, which needs "
            "coverage='all'."
        )
    shared = Shared(
        state,
        everywhere,
        skip=[glob for glob in skip if ":" in glob],
        stated={glob: layout for glob, layout in stated.items() if ":" in glob},
    )
    coverage = Coverage(shared)
    names: dict[nn.Module, list[str]] = {}  # a tied module has several
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    skipped = _match_modules(names, [glob for glob in skip if ":" not in glob], "skip")
    hosts = _match_modules(names, insert_after, "insert_after")
    for module, aliases in names.items():
        kind, site = type(module).__name__, None
        reason, handler = _judge(module, everywhere)
        if reason is not None:
            site = Site(aliases[0], kind, adaptive=not reason, reason=reason, state=state)
            coverage.module_sites.append(site)
            if site.adaptive and len(aliases) > 1:
                site.reason = f"tied: also {', '.join(aliases[1:])}"
            if site.adaptive and module in skipped:
                site.leave_ordinary(SKIPPED)
            elif site.adaptive and all(_is_frozen(model, alias) for alias in aliases):
                site.reason = FROZEN  # the probe sees whether gradients pass it
            if not site.adaptive and reason and not isinstance(module, _DropoutNd):
                site = None  # the functions that it calls may still be intercepted
        needed = module in hosts or (site is not None and site.adaptive)
        if needed or (everywhere and (site is not None or _may_drop(module))):
            stand_in = StandIn(module, aliases[0] or kind, shared, site, handler)
            coverage.stand_ins.append(stand_in)
            if module in hosts:
                stand_in.inserted = Site(aliases[0] or "(root)", f"inserted after {kind}")
                stand_in.inserted.state = state
                coverage.module_sites.append(stand_in.inserted)
    of_modules = {glob: layout for glob, layout in stated.items() if ":" not in glob}
    check_matches(coverage.module_sites, of_modules, "site_layouts")
    for site in coverage.module_sites:
        site.stated = getattr(model, "sacm_layouts", {}).get(site.name)
        for glob, layout in of_modules.items():
            if matches(site.name, glob):
                site.stated = layout
    return coverage


def _match_modules(
    names: Mapping[nn.Module, list[str]], globs: Iterable[str], argument: str
) -> set[nn.Module]:
    """Return the modules whose name matches one of the globs; each glob must match some."""
    matched: set[nn.Module] = set()
    for glob in globs:
        hits = {m for m, aliases in names.items() if any(matches(a, glob) for a in aliases)}
        if not hits:
            raise ArgumentError(f"{argument}: no module of the model matches {glob!r}.")
        matched |= hits
    return matched


def _judge(module: nn.Module, everywhere: bool) -> tuple[str | None, Handler | None]:
    """Return why a module that drops stays ordinary, "" if it need not, and what replaces it.

    The reason is None for a module that is no kind of dropout.
    """
    if isinstance(vars(module).get("forward"), StandIn) and isinstance(module, _DropoutNd):
        return "belongs to another modulator", None
    if isinstance(module, tuple(kind for kind in DROPOUTS if isinstance(kind, type))):
        return "", drop_module if type(module) in DROPOUTS else None  # or functions of a subclass
    if isinstance(module, torch.jit.ScriptModule):
        scripted = "Dropout" in module.original_name
        return "not covered: compiled by torch.jit.script" if scripted else None, None
    if isinstance(module, _RECURRENT) and module.dropout:
        if module.num_layers == 1:
            return "no effect: one layer has no dropout between layers", None
        if type(module).forward not in [kind.forward for kind in _RECURRENT]:
            return "not covered: a recurrent class with a forward of its own", None
        if everywhere:
            return "", drop_between_layers
        kernel = "not covered: drops inside a fused recurrent kernel"
        return f"{kernel}; coverage='all' runs its layers one by one", None
    is_layer = next(module.parameters(), None) is None and not any(module.children())
    if is_layer and any(part in type(module).__name__.lower() for part in _NAMES):
        return "not covered: a dropout class of its own", None
    return None, None


def _is_frozen(model: nn.Module, name: str) -> bool:
    """Return whether the nearest ancestor that owns parameters has none that is trained."""
    while name:
        name = name.rpartition(".")[0]
        parameters = list(model.get_submodule(name).parameters())
        if parameters:
            return not any(p.requires_grad for p in parameters)
    return False


def _may_drop(module: nn.Module) -> bool:
    """Return whether the forward of a module may call dropout as a function."""
    if isinstance(module, torch.jit.ScriptModule):  # its forward is no Python code
        return False
    if type(module).forward is nn.Module.forward:  # nn.ModuleList has none of its own
        return False
    builtin = type(module).__module__.startswith("torch.nn.modules")
    return isinstance(module, nn.MultiheadAttention) or not builtin or any(module.children())
