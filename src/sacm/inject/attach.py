"""Attach the method to a model, and take it off again.

Attaching does not replace modules. Every `nn.Dropout` object of the model stays where it is and
changes its class: `host.__class__ = ADAPTIVE[type(host)]`. Python looks methods up in the class of
an object, so from then on `AdaptiveDropout.forward` runs, while the object itself is the same. The
adaptive class is a subclass of the torch class with the same attributes and no parameters, which
is what makes the assignment safe. Therefore:

- names and `state_dict` keys stay, because parents hold the same children under the same names;
- hooks, `p`, `inplace` and the training flag stay, because they are attributes of the object;
- ties stay: an object registered twice, or kept in a list of the user's, is adaptive everywhere;
- `detach` assigns the old class back, and the model is what it was.

What an adaptive object needs beyond that, its `Site`, is one entry of its `__dict__`. Dropout that
has no module of its own is intercepted (`inject.functional`), and modules named in `insert_after`
get a forward hook. The modulator with the 2C + 2 scalars becomes a child of the model, and two
hooks of the model call it: rates are computed before each training forward. In evaluation the
adaptive classes call torch's own forward.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from torch import Tensor, nn

from sacm.core.config import SACMConfig, check_config
from sacm.core.scorer import check_whole_number
from sacm.errors import ArgumentError, SACMWarning
from sacm.inject.arguments import (
    check_mapping,
    check_model,
    check_module,
    check_names,
    find_functional,
    make_call,
)
from sacm.inject.discover import FROZEN, assign_layouts, collect_names, discover, match_modules
from sacm.inject.functional.coverage import FunctionalCoverage
from sacm.inject.functional.shared import Interception
from sacm.inject.layout import SiteLayout
from sacm.inject.modulated_forward import ModulatedForward
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import (
    ADAPTIVE,
    ORIGINAL,
    SKIPPED,
    InsertedSite,
    Site,
    restore_class,
    swap_class,
)
from sacm.inject.state import MODULATOR, SITE_LAYERS, Call
from sacm.inject.window_argument import InputArg, WindowArgument, WindowLayout

Model = TypeVar("Model", bound=nn.Module)


def attach(
    model: nn.Module,
    *,
    channels: int,
    config: SACMConfig | None = None,
    example_inputs: Any = None,
    input_arg: InputArg = 0,
    window_layout: WindowLayout = "BLC",
    coverage: Literal["modules", "all"] = "modules",
    scorer: nn.Module | None = None,
    mapper: nn.Module | None = None,
    per_channel: bool = False,
    insert_after: Sequence[str] = (),
    skip: Sequence[str] = (),
    site_layouts: Mapping[str, SiteLayout] | None = None,
    unroll_recurrent: bool = False,
) -> CapacityModulator:
    """Make every dropout of `model` adapt to the reliability of each window; in place.

    Do this before the optimizer is made: `model.parameters()` gains the 2C + 2 scalars.

    Args:
        model: Any module whose forward takes windows.
        channels: Number of channels `C` of a window.
        config: Settings of the method; the paper's for None.
        example_inputs: A batch to probe at once: the windows `[B, L, C]`, or the tuple or dict of
            arguments of ``model.forward``. Without it the first training batch is probed.
        input_arg: The window among the arguments of forward: position, name, or a function
            ``(args, kwargs) -> tensor``.
        window_layout: Order of the dimensions of the window tensor, ``"BLC"`` or ``"BCL"``.
        coverage: ``"modules"`` covers dropout modules, ``"all"`` functional and attention dropout
            too.
        scorer: Module from windows `[B, L, C]` to scores `[B]`, in place of `SpectralScorer`.
        mapper: Module from scores `[B]` to rates `[B]`, each in [0, 1), in place of `RateMapper`.
        per_channel: Give every channel a rate of its own at the sites that keep channels apart; the
            other sites drop at the mean of a window's rates.
        insert_after: Names or globs of modules whose output shall drop too.
        skip: Names or globs of dropout sites to leave ordinary.
        site_layouts: Layout by site name or glob, for sites that the probe cannot resolve, e.g.
            ``{"encoder.drop": SiteLayout(dim=0, fold=7)}``.
        unroll_recurrent: Make the dropout between the layers of `nn.LSTM`, `nn.GRU` and `nn.RNN`
            adaptive. In training their layers then run one by one, which is somewhat slower.

    Returns:
        The modulator, also registered as ``model.sacm_modulator``.

    Raises:
        LayoutError: The layout of some sites is unknown; the message lists all of them.
        ArgumentError: An argument is wrong, or the window does not fit it.

    Example:
        >>> import torch
        >>> model = nn.Sequential(nn.Linear(7, 16), nn.Dropout(0.1), nn.Linear(16, 7))
        >>> modulator = attach(model, channels=7)
        >>> out = model(torch.randn(4, 96, 7))  # the layouts are found on this first batch
        >>> modulator.rates.shape
        torch.Size([4])
    """
    check_model(model, coverage)
    check_module("scorer", scorer)
    check_module("mapper", mapper)
    window = WindowArgument(
        model, input_arg, window_layout, check_whole_number("channels", channels)
    )
    modulator = CapacityModulator(
        window=window,
        config=check_config(config),
        scorer=scorer,
        mapper=mapper,
        per_channel=per_channel,
    )
    skipped, hosts = check_names("skip", skip), check_names("insert_after", insert_after)
    stated = check_mapping("site_layouts", site_layouts, SiteLayout)
    found = _find_modules(model, skipped, unroll_recurrent=unroll_recurrent)
    _find_sites(model, modulator, coverage, found, skip=skipped, insert_after=hosts, stated=stated)
    if not modulator.adaptive and not modulator.frozen and modulator.coverage is None:
        warnings.warn(
            f"{type(model).__name__} has no dropout to make adaptive and is left unchanged; add "
            "sites with insert_after=[…], or cover functional dropout with coverage='all'.",
            SACMWarning,
            stacklevel=2,
        )
        return modulator
    call = None if example_inputs is None else make_call(model, example_inputs)
    if call is not None:
        window(call.args, call.kwargs)  # refuse a wrong window before anything is changed
    _install(model, modulator)
    if call is not None:
        _probe_or_detach(model, modulator, call)
    return modulator


def detach(model: Model) -> Model:
    """Take the method off a model again, in place.

    Args:
        model: An attached model; any other is returned as it is.

    Returns:
        The same model, as it was before `attach`, with its trained weights.

    Example:
        >>> model = nn.Sequential(nn.Linear(7, 16), nn.Dropout(0.1))
        >>> modulator = attach(model, channels=7)
        >>> list(detach(model).state_dict())
        ['0.weight', '0.bias']
    """
    modulator = getattr(model, MODULATOR, None)
    if not isinstance(modulator, CapacityModulator):
        return model
    for host, _ in modulator.adaptive:
        if isinstance(host, InsertedSite):
            _remove_hook(host.host, host)
        else:
            restore_class(host)
    stand_in = model.__dict__.get("forward")
    if isinstance(stand_in, ModulatedForward):
        stand_in.unwrap()
    if modulator.coverage is not None:
        modulator.coverage.unwrap()
    _remove_hook(model, modulator.before_forward)
    _remove_hook(model, modulator.after_forward)
    delattr(model, MODULATOR)
    return model


def strip_state_dict(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the raw model's part of an attached model's checkpoint.

    Args:
        state_dict: ``state_dict()`` of an attached model, compiled or not.

    Returns:
        The entries of the raw model, under the raw model's keys.

    Example:
        >>> model = nn.Sequential(nn.Linear(7, 16), nn.Dropout(0.1))
        >>> modulator = attach(model, channels=7)
        >>> len(model.state_dict()), list(strip_state_dict(model.state_dict()))
        (6, ['0.weight', '0.bias'])
    """
    return {
        key.replace("_orig_mod.", ""): value
        for key, value in state_dict.items()
        if {MODULATOR, SITE_LAYERS}.isdisjoint(key.split("."))
    }


def _find_modules(
    model: nn.Module, skip: list[str], *, unroll_recurrent: bool
) -> dict[nn.Module, Site]:
    """Return the dropout modules with their sites; names with a colon mean functional dropout."""
    if not isinstance(unroll_recurrent, bool):
        raise ArgumentError(f"unroll_recurrent must be True or False, got {unroll_recurrent!r}.")
    return discover(
        model, [glob for glob in skip if ":" not in glob], unroll_recurrent=unroll_recurrent
    )


def _find_sites(
    model: nn.Module,
    modulator: CapacityModulator,
    coverage: str,
    found: dict[nn.Module, Site],
    *,
    skip: list[str],
    insert_after: list[str],
    stated: dict[str, SiteLayout],
) -> None:
    """Give the modulator its sites; the model is not changed."""
    # Sites of functional calls carry a colon in their name and show themselves to the probe only.
    by_call = {
        *find_functional(skip, "skip", coverage),
        *find_functional(stated, "site_layouts", coverage),
    }
    names = collect_names(model)
    hosts = match_modules(names, insert_after, "insert_after")
    _adopt(modulator, found, [_insert_site(host, names[host][0]) for host in hosts])
    assign_layouts(modulator.sites, {k: v for k, v in stated.items() if k not in by_call})
    owned = {module: site for module, site in found.items() if _needs_stand_in(module, site)}
    if coverage == "all" or any(s.adaptive or s.reason == FROZEN for s in owned.values()):
        shared = Interception(
            modulator.state,
            skip=[glob for glob in skip if glob in by_call],
            site_layouts={k: v for k, v in stated.items() if k in by_call},
        )
        modulator.coverage = FunctionalCoverage(shared, hosts=owned, everywhere=coverage == "all")


def _probe_or_detach(model: nn.Module, modulator: CapacityModulator, call: Call) -> None:
    """Find the layouts; detach a model that cannot be probed or has nothing to adapt."""
    try:
        modulator.probe(call)
    except BaseException:
        detach(model)
        raise
    if not any(site.adaptive for site in modulator.sites):  # the probe has said so
        detach(model)
        modulator.coverage = None


def _install(model: nn.Module, modulator: CapacityModulator) -> None:
    """Change the model: classes of its dropouts, stand-ins, the modulator and its hooks."""
    for host, site in modulator.adaptive:
        if isinstance(host, InsertedSite):
            host.host.register_forward_hook(host)
        else:
            swap_class(host, site)
    if modulator.coverage is not None:
        modulator.coverage.wrap(model)
    reference = next(p for p in model.parameters() if p.requires_grad)
    modulator.to(reference.device).train(model.training)
    model.add_module(MODULATOR, modulator)
    if type(model).__call__ is nn.Module.__call__:
        model.register_forward_pre_hook(modulator.before_forward, with_kwargs=True)
        model.register_forward_hook(modulator.after_forward, always_call=True)
    else:  # a `__call__` of the model's own need not run hooks
        model.__dict__["forward"] = ModulatedForward(model, modulator)


def _adopt(
    modulator: CapacityModulator, found: dict[nn.Module, Site], inserted: Sequence[InsertedSite]
) -> None:
    """Hand the sites to the modulator."""
    for module, site in found.items():
        site.state = modulator.state
        if not site.adaptive:
            modulator.left_alone.append(site)
        elif type(module) in ADAPTIVE:  # others belong to the functional coverage
            modulator.adaptive.append((module, site))
        if site.reason == FROZEN:
            modulator.frozen[module] = site
    for host in inserted:
        host.sacm_site.state = modulator.state
        modulator.adaptive.append((host, host.sacm_site))


def _needs_stand_in(module: nn.Module, site: Site) -> bool:
    """True for modules that drop, or may be told to, but are of none of torch's classes."""
    own = type(module) in (*ADAPTIVE, *ORIGINAL)
    return not own and (site.adaptive or site.reason in (SKIPPED, FROZEN))


def _insert_site(host: nn.Module, name: str) -> InsertedSite:
    """Make a site after a module that has no dropout of its own."""
    return InsertedSite(Site(name or "(root)", f"inserted after {type(host).__name__}"), host)


def _remove_hook(module: nn.Module, hook: Any) -> None:
    """Remove a hook, found by value: the handle of its registration does not survive a copy."""
    for table, flags in (
        (module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs),
        (module._forward_hooks, module._forward_hooks_always_called),
    ):
        for key in [key for key, value in table.items() if value == hook]:
            del table[key]
            flags.pop(key, None)
