"""The stand-in for the forward of a module that calls dropout as a function."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sacm.inject.functional.calls import OwnerCalls
from sacm.inject.functional.checkpointed import checkpoint_frame, follow_rerun
from sacm.inject.functional.interceptor import Interceptor
from sacm.inject.functional.shared import Interception
from sacm.inject.sites import Site


class OwnerForward(OwnerCalls):
    """Stands in for the forward of one module while the module is in training."""

    def __init__(
        self,
        module: nn.Module,
        name: str,
        shared: Interception,
        *,
        own_site: Site | None = None,
        is_dropout: bool = False,
    ) -> None:
        super().__init__(name, shared, own_site=own_site, is_dropout=is_dropout)
        self.module = module
        self.original = module.__dict__.get("forward")
        self.ran = False
        self.wrapped = True
        self.frame: Any = None  # the checkpointed part that this forward runs in

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, with its functional dropout made adaptive in training."""
        # Torch fetches the model's forward before its pre-hooks run. If the probe in such a hook
        # takes this stand-in away, it is called once more all the same.
        if not self.module.training or not self.wrapped:
            return self.own_forward(*args, **kwargs)
        self.ran = True
        stack = self.shared.stack
        outer = self.counts, self.differentiable, self.frame
        self.counts, self.differentiable = {}, torch.is_grad_enabled()
        self.frame = checkpoint_frame()
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with Interceptor(self.shared):
                return self.own_forward(*args, **kwargs)
        finally:
            stack.pop()
            self.counts, self.differentiable, self.frame = outer

    def next_site(self, kind: str) -> Site:
        """Return the site of the next call of this kind in the running forward."""
        frame = checkpoint_frame()
        if frame is not None and frame is not self.frame:
            follow_rerun(frame, functools.partial(self.run_again, dict(self.counts)))
        return super().next_site(kind)

    def run_again(self, counts: dict[str, int], part: Callable[[], Any]) -> Any:
        """Run a checkpointed function of this forward again, in the backward pass."""
        stack = self.shared.stack
        outer, self.counts = self.counts, dict(counts)
        stack.append(self)
        try:
            if len(stack) > 1:
                return part()
            with Interceptor(self.shared):
                return part()
        finally:
            stack.pop()
            self.counts = outer

    def claim_site(self, site: Site) -> None:
        """Note that the module ran and dropped at its own site."""
        self.ran = True
        self.sites["module", 0] = site
        self.differentiable = torch.is_grad_enabled()  # a module re-runs through its stand-in

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
