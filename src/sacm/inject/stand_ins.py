"""Intercept dropout: stand-ins for the forward of modules.

Every module that drops, or may call a function that does, gets a stand-in for its `forward` as an
instance attribute. Keys, hooks, class, ties and identity of the module do not change, and removing
the attribute removes the method. A dropout module is replaced by a handler as a whole. For any
other module the outermost stand-in opens a `TorchFunctionMode`: torch shows it every function call,
and calls that drop (`torch.nn.functional.dropout`, the `dropout_p` of attention) are led to a
handler. The innermost stand-in on the stack makes the call, and gives the site its name:
`encoder.attention:dropout[1]` is the second call of `dropout` in one forward. Modules, not the
model, carry stand-ins because activation checkpointing re-runs single modules in backward.
"""

from __future__ import annotations

import fnmatch
import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sacm.errors import ArgumentError
from sacm.inject.handlers import DROPOUTS, FUNCTIONS, Handler
from sacm.inject.sites import ModulationState, Site, SiteLayout

SKIPPED = "skipped on request: ordinary dropout"


@dataclass(eq=False)
class Shared:
    """What the stand-ins of one model share; copied with each part of the model, so it is small."""

    state: ModulationState
    everywhere: bool = False  # also functions that modules call which are no kind of dropout
    skip: Sequence[str] = ()  # names or globs of functional sites to leave ordinary
    stated: Mapping[str, SiteLayout] = field(default_factory=dict)  # of functional sites
    stack: list[StandIn] = field(default_factory=list)  # that intercept now, innermost last


@dataclass(eq=False)
class Coverage:
    """The sites of one model, and the stand-ins that make them adaptive."""

    shared: Shared
    module_sites: list[Site] = field(default_factory=list)  # adaptive or not, and inserted ones
    stand_ins: list[StandIn] = field(default_factory=list)

    @property
    def functional_sites(self) -> list[Site]:
        """Sites of functions that were called so far."""
        called = [(site, each) for each in self.stand_ins for site in each.calls.values()]
        return [site for site, stand_in in called if site is not stand_in.site]

    @property
    def sites(self) -> list[Site]:
        """All sites found so far, adaptive ones first."""
        sites = [*self.module_sites, *self.functional_sites]
        return sorted(sites, key=lambda site: not site.adaptive)

    def settle(self) -> None:
        """After a probe, remove the stand-ins that are not needed.

        Those that never ran stay. Those of ordinary dropouts stay beside others that intercept
        functions, so that the function inside is not taken for a functional site.
        """
        check_matches(self.functional_sites, self.shared.skip, "skip")
        check_matches(self.functional_sites, self.shared.stated, "site_layouts")
        open_ended = [each for each in self.stand_ins if each.handler is None and not each.exempt]
        for each in open_ended:
            if each.site is not None and each.ran and not each.calls:
                each.site.leave_ordinary("not covered: a class that drops in a way of its own")
        intercept = any(each.calls or not each.ran for each in open_ended)
        for each in [*self.stand_ins]:
            needed = each.handler is not None or each.calls or not each.ran
            if each.inserted is None and not (intercept if each.exempt else needed):
                self.remove(each)

    def remove(self, stand_in: StandIn) -> None:
        """Give a module its own forward back."""
        stand_in.uninstall()
        self.stand_ins.remove(stand_in)


class StandIn:
    """Stands in for the forward of one module while the module is in training.

    A kind of dropout has a site of its own. Its handler computes what the module computes, with
    dropout at that site. Without a handler the functions that the module calls are intercepted.
    """

    def __init__(
        self,
        module: nn.Module,
        name: str,
        shared: Shared,
        site: Site | None = None,
        handler: Handler | None = None,
    ) -> None:
        self.module, self.name, self.shared = module, name, shared
        self.site, self.handler = site, handler
        self.inserted: Site | None = None  # drops the output of the module
        self.calls: dict[tuple[str, int], Site] = {}  # sites of functions that the module calls
        self.counts: dict[str, int] = {}  # such calls of the running forward, by function
        self.original: Any = None  # a forward that was set on the instance before
        self.ran = self.installed = False
        self.mode: Any = None  # of autograd, when the running forward began

    def install(self) -> None:
        """Take the place of the module's forward."""
        self.original, self.installed = self.module.__dict__.get("forward"), True
        self.module.__dict__["forward"] = self

    def uninstall(self) -> None:
        """Give the module its own forward back."""
        self.installed = False
        if self.module.__dict__.get("forward") is not self:
            return  # another stand-in is around this one, which only passes calls on from now
        if self.original is None:
            del self.module.__dict__["forward"]
        else:
            self.module.__dict__["forward"] = self.original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, with its dropout made adaptive in training."""
        # Torch fetches the model's forward before its pre-hooks run. If the probe in such a hook
        # takes this stand-in away, it is called once more all the same.
        probing = self.shared.state.tap is not None
        if not self.installed or not (self.module.training or probing):
            return self.own_forward(*args, **kwargs)
        if self.handler is not None and self.site is not None and self.site.covers():
            output = self.handler(self, self.site, *args, **kwargs)
        elif self.module.training and (self.shared.everywhere or self.site is not None):
            output = self._intercept(*args, **kwargs)
        else:
            output = self.own_forward(*args, **kwargs)
        if self.inserted is None or not self.inserted.covers():
            return output
        if isinstance(output, tuple):
            return (self.inserted.drop(output[0]), *output[1:])
        return self.inserted.drop(output)

    def _intercept(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, with its functional dropout made adaptive."""
        self.ran = True
        stack = self.shared.stack
        outer = self.counts, self.mode
        self.counts, self.mode = {}, _autograd_mode()
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with Interceptor(stack):
                return self.own_forward(*args, **kwargs)
        finally:
            stack.pop()
            self.counts, self.mode = outer

    @property
    def exempt(self) -> bool:
        """Whether this is a dropout that stays ordinary although it is called as a function."""
        return self.site is not None and not self.site.adaptive

    def next_site(self, kind: str) -> Site:
        """Return the site of the next call of this kind in the running forward."""
        ordinal = self.counts.get(kind, 0)
        self.counts[kind] = ordinal + 1
        if (kind, ordinal) not in self.calls:
            first = self.site if not self.calls else None
            self.calls[kind, ordinal] = first or self._make_site(kind, ordinal)
        return self.calls[kind, ordinal]

    def _make_site(self, kind: str, ordinal: int) -> Site:
        """Make a functional site: `encoder.attention:dropout`."""
        name = f"{self.name}:{kind}" + (f"[{ordinal}]" if ordinal else "")
        site = Site(name, f"functional {kind}", state=self.shared.state)
        if any(matches(name, glob) for glob in self.shared.skip):
            site.leave_ordinary(SKIPPED)
        for glob, layout in self.shared.stated.items():
            if matches(name, glob):
                site.stated = layout
        return site

    def check_rerun(self, site: Site) -> None:
        """Warn if a function is checkpointed: its re-run does not pass this stand-in."""
        if site.state.tap is None and self.mode is not None and self.mode != _autograd_mode():
            site.warn(
                "drops in a part of the forward that has gradients switched off or its own hooks "
                "for saved tensors; if this is checkpointing of a function, its re-run drops in "
                "another way: make the function a module"
            )

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


def drop_module(stand_in: StandIn, site: Site, input: Tensor) -> Tensor:
    """Drop as `nn.Dropout` and its relatives for feature maps do."""
    module: Any = stand_in.module
    return site.drop_as(DROPOUTS[type(module)], input, inplace=module.inplace)


class Interceptor(TorchFunctionMode):
    """Sees every torch function that runs, and leads those that drop to their handler."""

    def __init__(self, stack: list[StandIn]) -> None:
        super().__init__()
        self.stack = stack

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = FUNCTIONS.get(func)
        if handler is None or self.stack[-1].exempt:
            return func(*args, **(kwargs or {}))
        return handler(self.stack[-1], func, *args, **(kwargs or {}))


def _autograd_mode() -> Any:
    """Return what checkpointing changes: whether gradients are on, and hooks for saved tensors."""
    if torch.compiler.is_compiling():
        return None
    return torch.is_grad_enabled(), torch._C._autograd._top_saved_tensors_default_hooks(True)


def check_matches(sites: Sequence[Site], globs: Iterable[str], argument: str) -> None:
    """Raise an ArgumentError if a name or glob matches no site."""
    for glob in globs:
        if not any(matches(site.name, glob) for site in sites):
            names = ", ".join(site.name for site in sites) or "none"
            raise ArgumentError(f"{argument}: no dropout site matches {glob!r}; sites: {names}.")


def matches(name: str, glob: str) -> bool:
    """Return whether a glob matches; the brackets of `attention:dropout[1]` may be literal."""
    return name == glob or fnmatch.fnmatchcase(name, glob)
