"""Attach the method to a model, and take it off again.

Attaching replaces no module. Every module that drops gets a stand-in for its forward
(`inject.stand_ins`), so names, `state_dict` keys, classes, hooks, ties and the training flag stay.
The modulator with the 2C + 2 scalars becomes a child of the model; two hooks of the model call it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy

from sacm.core.config import SACMConfig, check_config
from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer, check_whole_number
from sacm.errors import ArgumentError, SACMWarning
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import MODULATOR, SiteLayout, matches
from sacm.inject.stand_ins import DROPOUTS, StandIn, drop_between_layers, drop_module
from sacm.inject.window import Arguments, InputArg, WindowArgument, WindowLayout

Model = TypeVar("Model", bound=nn.Module)

_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_KINDS = tuple(kind for kind in DROPOUTS if isinstance(kind, type))


def attach(
    model: nn.Module,
    *,
    channels: int | None = None,
    config: SACMConfig | None = None,
    example_inputs: Any = None,
    input_arg: InputArg = 0,
    window_layout: WindowLayout = "BLC",
    coverage: Literal["modules", "all"] = "modules",
    scorer: nn.Module | None = None,
    mapper: nn.Module | None = None,
    insert_after: Sequence[str] = (),
    skip: Sequence[str] = (),
    site_layouts: Mapping[str, SiteLayout] | None = None,
) -> CapacityModulator:
    """Make every dropout of `model` adapt to the reliability of each window; in place.

    Do this before the optimizer is made: `model.parameters()` gains the 2C + 2 scalars. The layouts
    of the sites are found on the example or the first training batch, and verified on the next two.
    Nothing raises after that: an activation of a new kind drops at the mean rate of its batch, with
    one warning.

    Args:
        model: Any module whose forward takes windows.
        channels: Number of channels `C` of a window; None reads it from `example_inputs` or the
            first training batch. Where several processes train it must be told.
        config: Settings of the method; the paper's for None.
        example_inputs: A batch to probe at once: the windows `[B, L, C]`, or the tuple or dict of
            arguments of ``model.forward``.
        input_arg: The window among the arguments of forward: position, name, or a function
            ``(args, kwargs) -> tensor``.
        window_layout: Order of the dimensions of the window tensor, ``"BLC"`` or ``"BCL"``.
        coverage: ``"modules"`` covers dropout modules; ``"all"`` functional and attention dropout
            too, and dropout between the layers of `nn.LSTM`, `nn.GRU` and `nn.RNN`, which then run
            one by one in training.
        scorer: Module from windows `[B, L, C]` to scores `[B]`, in place of `SpectralScorer`.
        mapper: Module from scores `[B]` to rates `[B]`, each in [0, 1), in place of `RateMapper`.
        insert_after: Names or globs of modules whose output shall drop too.
        skip: Names or globs of dropout sites to leave ordinary.
        site_layouts: Layout by site name or glob, for sites that the probe cannot resolve, e.g.
            ``{"encoder.drop": SiteLayout(dim=0, fold=7)}``.

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
    _check_model(model)
    if coverage not in ("modules", "all"):
        raise ArgumentError(f"coverage must be 'modules' or 'all', got {coverage!r}.")
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        if not isinstance(module, nn.Module | None):
            raise ArgumentError(f"{name} must be an nn.Module, got {module!r}.")
    if channels is not None:
        channels = check_whole_number("channels", channels)
    window = WindowArgument(model, input_arg, window_layout, channels)
    example = None if example_inputs is None else _as_arguments(example_inputs)
    if example is not None:  # refuse a wrong window before anything is changed
        window.channels = window(*example).shape[2]
    config = check_config(config)
    scorer = SpectralScorer(window.channels, config) if scorer is None else scorer
    mapper = RateMapper(config) if mapper is None else mapper
    modulator = CapacityModulator(window, config, scorer, mapper)
    state = modulator.state
    state.everywhere, state.skip = coverage == "all", _check_names("skip", skip)
    state.stated = {} if site_layouts is None else site_layouts
    if not isinstance(state.stated, Mapping) or not all(
        isinstance(name, str) and isinstance(layout, SiteLayout)
        for name, layout in state.stated.items()
    ):
        raise ArgumentError(f"site_layouts must map names to SiteLayout, got {site_layouts!r}.")
    _discover(model, modulator, _check_names("insert_after", insert_after))
    if not modulator.stand_ins:
        warnings.warn(
            f"{type(model).__name__} has no dropout to make adaptive and is left unchanged; add "
            "sites with insert_after=[…], or cover functional dropout with coverage='all'.",
            SACMWarning,
            stacklevel=2,
        )
        return modulator
    for stand_in in modulator.stand_ins:
        stand_in.install()
    reference = next(p for p in model.parameters() if p.requires_grad)
    modulator.to(reference.device).train(model.training)
    model.add_module(MODULATOR, modulator)
    modulator.handles = [
        model.register_forward_pre_hook(modulator.before_forward, with_kwargs=True),
        model.register_forward_hook(modulator.after_forward, always_call=True),
    ]
    if example is not None:
        try:
            modulator.probe(model, example)
        except BaseException:
            detach(model)
            raise
        if not any(site.adaptive for site in modulator.sites):  # the probe has said so
            detach(model)
    return modulator


def detach(model: Model) -> Model:
    """Return the model as it was before `attach`, with its trained weights; in place.

    Example:
        >>> model = nn.Sequential(nn.Linear(7, 16), nn.Dropout(0.1))
        >>> modulator = attach(model, channels=7)
        >>> list(detach(model).state_dict())
        ['0.weight', '0.bias']
    """
    modulator = getattr(model, MODULATOR, None)
    if not isinstance(modulator, CapacityModulator):
        return model
    for stand_in in modulator.stand_ins:
        stand_in.uninstall()
    for handle in modulator.handles:
        handle.remove()
    delattr(model, MODULATOR)
    return model


def strip_state_dict(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the raw model's part of the checkpoint of an attached model, compiled or not.

    Example:
        >>> model = nn.Sequential(nn.Linear(7, 16), nn.Dropout(0.1))
        >>> modulator = attach(model, channels=7)
        >>> len(model.state_dict()), list(strip_state_dict(model.state_dict()))
        (6, ['0.weight', '0.bias'])
    """
    return {
        key.replace("_orig_mod.", ""): value
        for key, value in state_dict.items()
        if MODULATOR not in key.split(".")
    }


def _discover(model: nn.Module, modulator: CapacityModulator, insert_after: Sequence[str]) -> None:
    """Find the sites of modules and make their stand-ins; the model is not changed."""
    state = modulator.state
    names: dict[nn.Module, list[str]] = {}  # a tied module has several
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    for glob in insert_after:
        if not any(matches(alias, glob) for aliases in names.values() for alias in aliases):
            raise ArgumentError(f"insert_after: no module of the model matches {glob!r}.")
    for module, (name, *others) in names.items():
        kind, site = type(module).__name__, None
        reason, handler = _judge(module, state.everywhere)
        if reason is not None:
            if not reason and all(_is_frozen(model, alias) for alias in (name, *others)):
                reason = "frozen: nothing around it is trained"
            site = state.make_site(name, kind, reason)
            modulator.module_sites.append(site)
            if site.adaptive and others:
                site.reason = f"tied: also {', '.join(others)}"
            if not isinstance(module, _KINDS) and not site.adaptive:
                site = None  # the functions that it calls may still be intercepted
        inserted = any(matches(alias, glob) for alias in (name, *others) for glob in insert_after)
        needed = inserted or (site is not None and site.adaptive)
        if needed or (state.everywhere and (site is not None or _may_drop(module))):
            stand_in = StandIn(module, name or kind, state, site, handler)
            modulator.stand_ins.append(stand_in)
            if inserted:
                stand_in.inserted = state.make_site(name or "(root)", f"inserted after {kind}")
                modulator.module_sites.append(stand_in.inserted)
    for site in modulator.module_sites:
        site.stated = site.stated or getattr(model, "sacm_layouts", {}).get(site.name)
    if not state.everywhere:
        modulator.check_names()


def _judge(module: nn.Module, everywhere: bool) -> tuple[str | None, Callable[..., Any] | None]:
    """Return why a dropout stays ordinary ("": it need not; None: no dropout), and its handler."""
    if isinstance(module, _KINDS):
        return "", drop_module if type(module) in _KINDS else None  # or functions of a subclass
    if isinstance(module, _RECURRENT) and module.dropout:
        if everywhere and type(module) in _RECURRENT:
            return "", drop_between_layers
        kernel = "not covered: drops inside a fused recurrent kernel"
        return f"{kernel}; coverage='all' runs its layers one by one", None
    is_layer = next(module.parameters(), None) is None and not any(module.children())
    name = getattr(module, "original_name", type(module).__name__).lower()  # of scripted modules
    if is_layer and ("drop" in name or "stochasticdepth" in name):
        return "not covered: a dropout class of its own", None
    return None, None


def _is_frozen(model: nn.Module, name: str) -> bool:
    """Return whether the child of the model that holds a site has parameters, but none trained."""
    parameters = list(model.get_submodule(name.partition(".")[0]).parameters())
    return bool(parameters) and not any(p.requires_grad for p in parameters)


def _may_drop(module: nn.Module) -> bool:
    """Return whether the forward of a module may call dropout as a function."""
    if isinstance(module, torch.jit.ScriptModule):  # its forward is no Python code
        return False
    origin = type(module).__module__
    if type(module).forward is nn.Module.forward or origin.startswith("torchmetrics"):
        return False  # nn.ModuleList has none of its own; darts saves its metrics
    builtin = origin.startswith("torch.nn.modules")
    return isinstance(module, nn.MultiheadAttention) or not builtin or any(module.children())


def _as_arguments(example: Any) -> Arguments:
    """Turn example inputs into the arguments of a call."""
    if isinstance(example, Mapping):
        return (), dict(example)
    if not isinstance(example, Tensor | tuple | list):
        raise ArgumentError(
            "example_inputs must be a tensor, a tuple of arguments or a dict of keyword arguments, "
            f"got {type(example).__name__}."
        )
    return (example,) if isinstance(example, Tensor) else tuple(example), {}


def _check_model(model: nn.Module) -> None:
    """Refuse models that cannot be attached to."""
    name = type(model).__name__
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"attach needs an nn.Module, got {name}.")
    if isinstance(model, DistributedDataParallel | DataParallel) or hasattr(model, "_orig_mod"):
        raise ArgumentError(f"attach to the model itself first, then wrap it in {name}.")
    for path, module in model.named_modules():
        if hasattr(module, MODULATOR) or isinstance(vars(module).get("forward"), StandIn):
            part = f"{path} of {name}" if path else name
            raise ArgumentError(f"{part} is already attached: detach it first.")
    if not any(p.requires_grad for p in model.parameters()):
        raise ArgumentError(f"{name} has no trainable parameters, so there is nothing to modulate.")
    if any(is_lazy(p) for p in model.parameters()):
        raise ArgumentError(f"{name} has lazy parameters without a shape: run a batch through it.")


def _check_names(argument: str, names: Any) -> list[str]:
    """Return names or globs as a list."""
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    if not is_list or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{argument} must be a list of names, got {names!r}.")
    return list(names)
