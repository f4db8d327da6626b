"""The owners of functional dropout in one model, and the interception of their calls."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass
class Interception:
    """What all owners of one model share: the running ones, and the user's wishes about sites.

    `stack` holds the running owners, innermost last. `tap` is set during a probe.
    """

    state: ModulationState
    skip: Sequence[str] = ()
    site_layouts: Mapping[str, SiteLayout] = field(default_factory=dict)
    stack: list[OwnerForward] = field(default_factory=list)
    tap: Tap | None = None

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

    def remove(self) -> None:
        """Stop showing activations to a probe."""
        self.tap = None


class Interceptor(TorchFunctionMode):
    """Sees every torch function that an owner calls, and leads those that drop to their handler."""

    def __init__(self, shared: Interception) -> None:
        super().__init__()
        self.shared = shared

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = HANDLERS.get(func)
        if handler is None or self.shared.stack[-1].exempt:
            return func(*args, **(kwargs or {}))
        return handler(self.shared.stack[-1], func, *args, **(kwargs or {}))


class OwnerForward:
    """Stands in for the forward of one module while the module is in training.

    Args:
        module: The owner.
        name: Its path, or the model's class name for the model itself.
        shared: What all owners of the model share.
        own_site: Site of the module itself if it is a kind of dropout; its first dropping call
            belongs to this site.
        is_dropout: The module is a kind of dropout; it is exempt while its site is ordinary.
    """

    def __init__(
        self,
        module: nn.Module,
        name: str,
        shared: Interception,
        *,
        own_site: Site | None = None,
        is_dropout: bool = False,
    ) -> None:
        self.module, self.name, self.shared = module, name, shared
        self.own_site, self.is_dropout = own_site, is_dropout
        self.sites: dict[tuple[str, int], Site] = {}
        self.counts: dict[str, int] = {}  # dropping calls of the running forward, by function
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
        stack = self.shared.stack
        outer = self.counts, self.mode
        self.counts, self.mode = {}, _autograd_mode()
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with Interceptor(self.shared):
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
            self.sites[key] = first or self.shared.make_site(self.name, *key)
        return self.sites[key]

    def list_undropped_attention(self) -> None:
        """List attention that is called with a rate of 0; one line for the owner."""
        key = ("attention_without_dropout", 0)
        if key not in self.sites:
            site = self.sites[key] = self.shared.make_site(self.name, *key)
            site.leave_ordinary("rate 0: attention without dropout stays as it is")

    def covers(self, site: Site) -> bool:
        """Return whether a call shall drop at the windows' own rates."""
        return site.adaptive and site.has_rates()

    def drop(self, site: Site, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop adaptively at a functional site; during a probe, show the activation instead."""
        if self.shared.tap is not None:
            changed = self.shared.tap(site, h)
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


class DropoutForward(OwnerForward):
    """Stands in for a module that drops by itself at one site, without a call to intercept."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Drop adaptively in training; run the module itself otherwise."""
        site = self.own_site
        if not self.module.training or site is None or not self.covers(site):
            return super().__call__(*args, **kwargs)
        self.ran = True
        self.sites["module", 0] = site
        return self.run(site, *args, **kwargs)

    def run(self, site: Site, *args: Any, **kwargs: Any) -> Any:
        """Compute what the module computes, with dropout at the site."""
        raise NotImplementedError


class RecognisedForward(DropoutForward):
    """Stands in for a recognised dropout class, such as DropPath, with the mask shape of its own.

    Whole rows or feature maps drop together.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shared_dims: dict[int, tuple[int, ...] | None] = {}  # by number of dimensions

    def run(self, site: Site, *args: Any, **kwargs: Any) -> Any:
        """Drop the activation."""
        (h,) = (*args, *kwargs.values())
        if h.dim() not in self.shared_dims:
            self._look_up(h.dim())
        shared = self.shared_dims[h.dim()]
        if shared is None:
            site.leave_ordinary(f"not covered: drops {h.dim()} dimensions in a way of its own")
            return self.own_forward(h)
        return self.drop(site, h, [1 if d in shared else n for d, n in enumerate(h.shape)])

    @not_compiled
    def _look_up(self, dims: int) -> None:
        """Find and remember which dimensions of such an input share a mask entry."""
        self.shared_dims[dims] = find_shared_dims(self.module, dims, self.own_forward)


class RecurrentForward(DropoutForward):
    """Runs the layers of an `nn.LSTM`, `nn.GRU` or `nn.RNN` one by one, with dropout between."""

    def run(self, site: Site, input: Any, hx: Any = None) -> Any:
        """Return the output and the last state."""
        assert isinstance(self.module, nn.RNNBase)
        if isinstance(input, PackedSequence) or input.dim() != 3:
            site.leave_ordinary("not covered: packed or single sequences drop in a fused kernel")
            return self.own_forward(input, hx)
        return run_layers(self.module, input, hx, lambda h: self.drop(site, h))


class FunctionalCoverage:
    """Finds and keeps the functional dropout sites of one model.

    Args:
        shared: What the owners share.
        hosts: Modules with a site of their own that torch's dropout classes do not cover:
            subclasses of these, recognised classes of others, and recurrent networks.
        everywhere: Cover functional dropout in all modules; otherwise in `hosts` only.
    """

    def __init__(
        self, shared: Interception, *, hosts: Mapping[nn.Module, Site], everywhere: bool
    ) -> None:
        self.shared, self.hosts, self.everywhere = shared, dict(hosts), everywhere
        self.own_sites = [site for site in hosts.values() if site.adaptive]
        self.owners: list[OwnerForward] = []

    @property
    def sites(self) -> list[Site]:
        """The sites found so far."""
        called = [(site, owner) for owner in self.owners for site in owner.sites.values()]
        return [*self.own_sites, *(site for site, owner in called if site is not owner.own_site)]

    def wrap(self, model: nn.Module) -> None:
        """Make every module that may call dropout as a function an owner."""
        for name, module in model.named_modules():
            hosted = module in self.hosts
            if hosted or (self.everywhere and _may_drop(module)):
                owner = _stand_in(module, hosted=hosted)(
                    module,
                    name or type(model).__name__,
                    self.shared,
                    own_site=self.hosts.get(module),
                    is_dropout=hosted or isinstance(module, nn.modules.dropout._DropoutNd),
                )
                module.__dict__["forward"] = owner
                self.owners.append(owner)

    def install_tap(self, tap: Tap) -> Interception:
        """Show every functional site to the probe until `remove` of the returned object."""
        self.shared.tap = tap
        return self.shared

    def finish_probe(self) -> None:
        """Unwrap the owners that ran without a dropping call; exempt and unreached ones stay."""
        check_matches(self.sites, self.shared.skip, "skip")
        check_matches(self.sites, self.shared.site_layouts, "site_layouts")
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


def _stand_in(module: nn.Module, *, hosted: bool) -> type[OwnerForward]:
    """Return the kind of stand-in for the forward of a module."""
    if not hosted or isinstance(module, nn.modules.dropout._DropoutNd):
        return OwnerForward
    return RecurrentForward if isinstance(module, nn.RNNBase) else RecognisedForward


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
