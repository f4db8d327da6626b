"""Intercept dropout that has no module of torch's dropout classes.

`torch.nn.functional.dropout`, the `dropout_p` of attention and the dropout inside
`nn.MultiheadAttention` are function calls; `DropPath` and recurrent networks drop in code of their
own. So every module that may drop in such a way, an owner, gets a stand-in for its `forward` as an
instance attribute. Keys, hooks, class and identity of the module do not change.

In training the stand-in of the outermost owner opens a `TorchFunctionMode`. Torch shows this mode
every function call, and calls that drop are led to a handler (`handlers.py`). The innermost owner
on the stack makes the call, and gives the site its name: `encoder.attention:dropout[1]` is the
second call of `dropout` in one forward. After the probe, owners that made no such call get their
own forward back. Owners, not the model, carry the stand-in because activation checkpointing re-runs
single modules in the backward pass.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from sacm.core.no_compile import not_compiled
from sacm.errors import SACMWarning
from sacm.inject.discover import check_matches, find_shared_dims, matches
from sacm.inject.functional.handlers import HANDLERS
from sacm.inject.functional.recurrent import run_layers
from sacm.inject.layout import SiteLayout
from sacm.inject.sites import SKIPPED, ModulationState, Site, Tap

Replacement = Callable[..., Any]  # (owner, site, arguments of forward) -> output


class FunctionalCoverage:
    """Finds and keeps the functional dropout sites of one model.

    Args:
        state: Rates of the running forward.
        hosts: Modules with a site of their own that torch's dropout classes do not cover:
            subclasses of these, recognised classes of others, and recurrent networks.
        everywhere: Cover functional dropout in all modules; otherwise in `hosts` only.
        skip: Names or globs of functional sites to leave ordinary.
        site_layouts: Layouts of functional sites that the user states, by name or glob.
    """

    def __init__(
        self,
        state: ModulationState,
        *,
        hosts: Mapping[nn.Module, Site],
        everywhere: bool,
        skip: Sequence[str],
        site_layouts: Mapping[str, SiteLayout],
    ) -> None:
        self.state, self.hosts, self.everywhere = state, dict(hosts), everywhere
        self.skip, self.site_layouts = skip, dict(site_layouts)
        self.own_sites = [site for site in hosts.values() if site.adaptive]
        self.owners: list[OwnerForward] = []
        self.stack: list[OwnerForward] = []  # the running ones, innermost last
        self.tap: Tap | None = None  # set during a probe

    @property
    def sites(self) -> list[Site]:
        """The sites found so far."""
        called = [(site, owner) for owner in self.owners for site in owner.sites.values()]
        return [*self.own_sites, *(site for site, owner in called if site is not owner.own_site)]

    def make_site(self, owner: str, kind: str, ordinal: int) -> Site:
        """Make a functional site, named after its owner: `encoder.attention:dropout`."""
        name = f"{owner}:{kind}" + (f"[{ordinal}]" if ordinal else "")
        site = Site(name, f"functional {kind}", state=self.state)
        if any(matches(name, glob) for glob in self.skip):
            site.leave_ordinary(SKIPPED)
        for glob, layout in self.site_layouts.items():
            if matches(name, glob):
                site.stated = layout
        return site

    def wrap(self, model: nn.Module) -> None:
        """Make every module that may call dropout as a function an owner."""
        for name, module in model.named_modules():
            is_dropout = isinstance(module, nn.modules.dropout._DropoutNd)
            hosted = module in self.hosts
            if hosted or (self.everywhere and _may_drop(module)):
                replacement: Replacement | None = None
                if hosted and not is_dropout:
                    is_recurrent = isinstance(module, nn.RNNBase)
                    replacement = drop_between_layers if is_recurrent else drop_recognised
                owner = OwnerForward(
                    module,
                    name or type(model).__name__,
                    self,
                    own_site=self.hosts.get(module),
                    is_dropout=hosted or is_dropout,
                    replacement=replacement,
                )
                module.__dict__["forward"] = owner
                self.owners.append(owner)

    def install_tap(self, tap: Tap) -> FunctionalCoverage:
        """Show every functional site to the probe until `remove` is called."""
        self.tap = tap
        return self

    def remove(self) -> None:
        """Stop showing activations to a probe."""
        self.tap = None

    def finish_probe(self) -> None:
        """Unwrap the owners that ran without a dropping call; exempt and unreached ones stay."""
        check_matches(self.sites, self.skip, "skip")
        check_matches(self.sites, self.site_layouts, "site_layouts")
        for owner in self.owners:
            if owner.own_site is not None and owner.ran and not owner.sites and not owner.exempt:
                owner.own_site.leave_ordinary("not covered: a class that drops in a way of its own")
        stay = [owner for owner in self.owners if owner.sites or owner.exempt or not owner.ran]
        if all(owner.exempt for owner in stay):
            stay = []
        self.unwrap([owner for owner in self.owners if owner not in stay])

    def unwrap(self, owners: Sequence[OwnerForward] | None = None) -> None:
        """Give modules their own forward back; all of them for None."""
        for owner in self.owners if owners is None else owners:
            owner.unwrap()
        self.owners = [owner for owner in self.owners if owner.wrapped]


class OwnerForward:
    """Stands in for the forward of one module while the module is in training.

    Args:
        module: The owner.
        name: Its path, or the model's class name for the model itself.
        coverage: What all owners of the model share.
        own_site: Site of the module itself if it is a kind of dropout; its first dropping call
            belongs to this site.
        is_dropout: The module is a kind of dropout; it is exempt while its site is ordinary.
        replacement: Computes what the module computes, with dropout at its own site.
    """

    def __init__(
        self,
        module: nn.Module,
        name: str,
        coverage: FunctionalCoverage,
        *,
        own_site: Site | None,
        is_dropout: bool,
        replacement: Replacement | None,
    ) -> None:
        self.module, self.name, self.coverage = module, name, coverage
        self.own_site, self.is_dropout, self.replacement = own_site, is_dropout, replacement
        self.sites: dict[tuple[str, int], Site] = {}
        self.counts: dict[str, int] = {}  # dropping calls of the running forward, by function
        self.shared_dims: dict[int, tuple[int, ...] | None] = {}  # of a recognised class
        self.original = module.__dict__.get("forward")
        self.ran = False
        self.wrapped = True
        self.mode: Any = None  # of autograd, when the running forward began

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, with its functional dropout made adaptive in training."""
        # Torch fetches the model's forward before its pre-hooks run. If the probe in such a hook
        # takes this stand-in away, it is called once more all the same.
        if not self.module.training or not self.wrapped:
            return self.own_forward(*args, **kwargs)
        self.ran = True
        site = self.own_site
        if self.replacement is not None and site is not None and self.covers(site):
            self.sites["module", 0] = site
            return self.replacement(self, site, *args, **kwargs)
        stack = self.coverage.stack
        outer = self.counts, self.mode
        self.counts, self.mode = {}, _autograd_mode()
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with Interceptor(self.coverage):
                return self.own_forward(*args, **kwargs)
        finally:
            stack.pop()
            self.counts, self.mode = outer

    @property
    def exempt(self) -> bool:
        """True where dropout stays ordinary although it is called as a function."""
        return self.is_dropout and (self.own_site is None or not self.own_site.adaptive)

    def next_site(self, kind: str) -> Site:
        """Return the site of the next call of this kind in the running forward."""
        key = kind, self.counts.get(kind, 0)
        self.counts[kind] = key[1] + 1
        if key not in self.sites:
            first = self.own_site if not self.sites else None
            self.sites[key] = first or self.coverage.make_site(self.name, *key)
        return self.sites[key]

    def covers(self, site: Site) -> bool:
        """Return whether a call shall drop at the windows' own rates."""
        return site.adaptive and site.has_rates()

    def drop(self, site: Site, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop adaptively at a functional site; during a probe, show the activation instead."""
        if self.coverage.tap is not None:
            changed = self.coverage.tap(site, h)
            return h if changed is None else changed
        if self.mode is not None and self.mode != _autograd_mode():
            warnings.warn(
                f"{site.name}: drops in a part of the forward that has gradients switched off or "
                "its own hooks for saved tensors; if this is checkpointing of a function, its "
                "re-run drops in another way: make the function a module.",
                SACMWarning,
                stacklevel=2,
            )
        return site.drop(h, mask_shape)

    @property
    def own_forward(self) -> Any:
        """The module's own forward."""
        if self.original is not None:
            return self.original
        return types.MethodType(type(self.module).forward, self.module)

    @property
    def __signature__(self) -> inspect.Signature:
        """Trainers read the arguments of a model from its forward."""
        return inspect.signature(self.own_forward)

    @property
    def __code__(self) -> Any:
        """Exporters read where it was defined."""
        return self.own_forward.__code__

    def unwrap(self) -> None:
        """Give the module its own forward back."""
        self.wrapped = False
        if self.module.__dict__.get("forward") is not self:
            return  # another stand-in is around this one, which only passes calls on from now
        if self.original is None:
            self.module.__dict__.pop("forward", None)
        else:
            self.module.__dict__["forward"] = self.original


class Interceptor(TorchFunctionMode):
    """Sees every torch function that an owner calls, and leads those that drop to their handler."""

    def __init__(self, coverage: FunctionalCoverage) -> None:
        super().__init__()
        self.coverage = coverage

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = HANDLERS.get(func)
        if handler is None or self.coverage.stack[-1].exempt:
            return func(*args, **(kwargs or {}))
        return handler(self.coverage.stack[-1], func, *args, **(kwargs or {}))


def drop_recognised(owner: OwnerForward, site: Site, *args: Any, **kwargs: Any) -> Any:
    """Drop as a recognised class such as DropPath does: whole rows or feature maps together."""
    (h,) = (*args, *kwargs.values())
    if h.dim() not in owner.shared_dims:
        _look_up_shared_dims(owner, h.dim())
    shared = owner.shared_dims[h.dim()]
    if shared is None:
        site.leave_ordinary(f"not covered: drops {h.dim()} dimensions in a way of its own")
        return owner.own_forward(h)
    return owner.drop(site, h, [1 if d in shared else n for d, n in enumerate(h.shape)])


@not_compiled
def _look_up_shared_dims(owner: OwnerForward, dims: int) -> None:
    """Find and remember which dimensions of such an input share a mask entry."""
    owner.shared_dims[dims] = find_shared_dims(owner.module, dims, owner.own_forward)


def drop_between_layers(owner: OwnerForward, site: Site, input: Any, hx: Any = None) -> Any:
    """Run the layers of an `nn.LSTM`, `nn.GRU` or `nn.RNN` one by one, with dropout between."""
    assert isinstance(owner.module, nn.RNNBase)
    if isinstance(input, PackedSequence) or input.dim() != 3:
        site.leave_ordinary("not covered: packed or single sequences drop in a fused kernel")
        return owner.own_forward(input, hx)
    return run_layers(owner.module, input, hx, lambda h: owner.drop(site, h))


def _may_drop(module: nn.Module) -> bool:
    """Return whether the forward of a module may call dropout as a function."""
    if isinstance(module, torch.jit.ScriptModule):  # its forward is no Python code
        return False
    if type(module).forward is nn.Module.forward:  # nn.ModuleList has none of its own
        return False
    builtin = type(module).__module__.startswith("torch.nn.modules")
    drops = isinstance(module, nn.modules.dropout._DropoutNd | nn.MultiheadAttention)
    return drops or not builtin or any(module.children())


def _autograd_mode() -> Any:
    """Return what checkpointing changes: whether gradients are on, and hooks for saved tensors."""
    if torch.compiler.is_compiling():
        return None
    return torch.is_grad_enabled(), torch._C._autograd._top_saved_tensors_default_hooks(True)
