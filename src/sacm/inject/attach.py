"""Attach the method to a model, and take it off again."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy

from sacm.core.config import SACMConfig
from sacm.core.validation import check_config, check_mapping, check_names, check_whole_number
from sacm.errors import ArgumentError, SACMWarning
from sacm.inject.discover import assign_layouts, collect_names, discover, match_modules
from sacm.inject.functional import FunctionalCoverage
from sacm.inject.layout import SiteLayout
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import ADAPTIVE, ORIGINAL, InsertedSite, Site
from sacm.inject.state import MODULATOR, Call
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
    insert_after: Sequence[str] = (),
    skip: Sequence[str] = (),
    site_layouts: Mapping[str, SiteLayout] | None = None,
) -> CapacityModulator:
    """Make every dropout of `model` adapt to the reliability of each window; in place.

    Do this before the optimizer is made: `model.parameters()` gains the 2C + 2 scalars.

    example_inputs: a window tensor, or the tuple or dict of arguments of `model.forward`; without
    it the layout probe waits for the first training batch. input_arg: the window among forward's
    arguments, by position, by name, or as a function `(args, kwargs) -> tensor`. coverage: "all"
    covers functional and attention dropout too. scorer: a module `[B, L, C] -> [B]` in place of the
    spectral one. insert_after: globs of modules whose output is to drop. skip: globs of dropouts
    to leave ordinary. site_layouts: where the windows sit at a site, when the probe cannot tell.
    """
    _check_model(model, coverage, scorer)
    window = WindowArgument(
        model, input_arg, window_layout, check_whole_number("channels", channels)
    )
    modulator = CapacityModulator(window=window, config=check_config(config), scorer=scorer)
    skipped, hosts = check_names("skip", skip), check_names("insert_after", insert_after)
    stated = check_mapping("site_layouts", site_layouts, SiteLayout)
    _find_sites(model, modulator, coverage, skip=skipped, insert_after=hosts, stated=stated)
    if not modulator.adaptive and modulator.coverage is None:
        warnings.warn(
            f"{type(model).__name__} has no dropout to make adaptive and is left unchanged; add "
            "sites with insert_after=[…], or cover functional dropout with coverage='all'.",
            SACMWarning,
            stacklevel=2,
        )
        return modulator
    call = None if example_inputs is None else _as_call(model, example_inputs)
    if call is not None:
        window(call.args, call.kwargs)  # refuse a wrong window before anything is changed
    _install(model, modulator)
    if call is not None:
        _probe_or_detach(model, modulator, call)
    return modulator


def detach(model: Model) -> Model:
    """Give the model back as it was before `attach`; a model without it is returned as it is."""
    modulator = getattr(model, MODULATOR, None)
    if not isinstance(modulator, CapacityModulator):
        return model
    for host, _ in modulator.adaptive:
        if isinstance(host, InsertedSite):
            _remove_hook(host.host, host)
        else:
            host.__class__ = ORIGINAL[type(host)]
            del host.__dict__["sacm_site"]
    if modulator.coverage is not None:
        modulator.coverage.unwrap()
    _remove_hook(model, modulator.before_forward)
    _remove_hook(model, modulator.after_forward)
    delattr(model, MODULATOR)
    return model


def strip_state_dict(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The raw model's part of an attached model's checkpoint, under the raw model's keys."""
    return {
        key.replace("_orig_mod.", ""): value
        for key, value in state_dict.items()
        if MODULATOR not in key.split(".")
    }


def _find_sites(
    model: nn.Module,
    modulator: CapacityModulator,
    coverage: str,
    *,
    skip: list[str],
    insert_after: list[str],
    stated: dict[str, SiteLayout],
) -> None:
    """Give the modulator its sites; the model is only looked at."""
    # Sites of functional calls carry a colon in their name and show themselves to the probe only.
    by_call = {*_functional(skip, "skip", coverage), *_functional(stated, "site_layouts", coverage)}
    found = discover(model, [glob for glob in skip if glob not in by_call])
    names = collect_names(model)
    hosts = match_modules(names, insert_after, "insert_after")
    _adopt(modulator, found, [_inserted(host, names[host][0]) for host in hosts])
    assign_layouts(modulator.sites, {k: v for k, v in stated.items() if k not in by_call})
    if coverage == "all":
        modulator.coverage = FunctionalCoverage(
            modulator.state,
            skip=[glob for glob in skip if glob in by_call],
            site_layouts={k: v for k, v in stated.items() if k in by_call},
        )


def _probe_or_detach(model: nn.Module, modulator: CapacityModulator, call: Call) -> None:
    """Find the layouts; a model that cannot be probed, or has nothing to adapt, is given back."""
    try:
        modulator.probe(call)
    except BaseException:
        detach(model)
        raise
    if not any(site.adaptive for site in modulator.sites):  # the probe has said so
        detach(model)
        modulator.coverage = None


def _install(model: nn.Module, modulator: CapacityModulator) -> None:
    for host, site in modulator.adaptive:
        if isinstance(host, InsertedSite):
            host.host.register_forward_hook(host)
        else:
            host.__class__ = ADAPTIVE[type(host)]
            host.__dict__["sacm_site"] = site
    if modulator.coverage is not None:
        modulator.coverage.wrap(model)
    reference = next(p for p in model.parameters() if p.requires_grad)
    modulator.to(reference.device).train(model.training)
    model.add_module(MODULATOR, modulator)
    model.register_forward_pre_hook(modulator.before_forward, with_kwargs=True)
    model.register_forward_hook(modulator.after_forward, always_call=True)


def _adopt(
    modulator: CapacityModulator, found: dict[nn.Module, Site], inserted: Sequence[InsertedSite]
) -> None:
    for module, site in found.items():
        site.state = modulator.state
        if site.adaptive:
            modulator.adaptive.append((module, site))
        else:
            modulator.left_alone.append(site)
    for host in inserted:
        host.sacm_site.state = modulator.state
        modulator.adaptive.append((host, host.sacm_site))


def _inserted(host: nn.Module, name: str) -> InsertedSite:
    return InsertedSite(Site(name or "(root)", f"inserted after {type(host).__name__}"), host)


def _remove_hook(module: nn.Module, hook: Any) -> None:
    """Found by value: the handle that registering returned does not survive a copy."""
    for table, flags in (
        (module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs),
        (module._forward_hooks, module._forward_hooks_always_called),
    ):
        for key in [key for key, value in table.items() if value == hook]:
            del table[key]
            flags.pop(key, None)


def _as_call(model: nn.Module, example: Any) -> Call:
    if isinstance(example, Tensor):
        return Call(model, (example,), {})
    if isinstance(example, Mapping):
        return Call(model, (), dict(example))
    if isinstance(example, tuple | list):
        return Call(model, tuple(example), {})
    raise ArgumentError(
        "example_inputs must be a tensor, a tuple of arguments or a dict of keyword arguments, "
        f"got {type(example).__name__}."
    )


def _check_model(model: nn.Module, coverage: str, scorer: nn.Module | None) -> None:
    name = type(model).__name__
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"attach needs an nn.Module, got {name}.")
    if isinstance(model, DistributedDataParallel | DataParallel) or hasattr(model, "_orig_mod"):
        raise ArgumentError(f"attach to the model itself first, then wrap it in {name}.")
    if hasattr(model, MODULATOR):
        raise ArgumentError(f"{name} is already attached: detach it first.")
    if not any(p.requires_grad for p in model.parameters()):
        raise ArgumentError(f"{name} has no trainable parameters, so there is nothing to modulate.")
    if any(is_lazy(p) for p in model.parameters()):
        raise ArgumentError(f"{name} has lazy parameters without a shape: run a batch through it.")
    if coverage not in ("modules", "all"):
        raise ArgumentError(f"coverage must be 'modules' or 'all', got {coverage!r}.")
    if not isinstance(scorer, nn.Module | None):
        raise ArgumentError(f"scorer must be an nn.Module, got {scorer!r}.")


def _functional(globs: Iterable[str], argument: str, coverage: str) -> list[str]:
    """Those of the names and globs that mean functional dropout, such as `encoder:dropout`."""
    found = [glob for glob in globs if ":" in glob]
    if found and coverage != "all":
        raise ArgumentError(
            f"{argument}: {found[0]!r} names a functional dropout, which needs coverage='all'."
        )
    return found
