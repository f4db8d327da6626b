"""Coverage beyond modules: dropout that a forward calls as a function.

`torch.nn.functional.dropout`, the `dropout_p` of scaled-dot-product attention and the attention
dropout inside `nn.MultiheadAttention` have no module to replace. Each module whose forward makes
such calls (its owner) runs under a torch-function mode that turns them into adaptive sites; the
owner rather than the model, so that activation checkpointing, which re-runs modules, is covered
too. What is checkpointed as a plain function re-runs outside of its owner, and is not.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sacm.errors import SACMWarning
from sacm.inject.discover import check_matches, matches
from sacm.inject.layout import SiteLayout
from sacm.inject.sites import Site, Tap, feature_mask_shape
from sacm.inject.state import ModulationState


class FunctionalCoverage:
    """All owners of one model, and the calls that the probe found in them."""

    def __init__(
        self,
        state: ModulationState,
        *,
        skip: Sequence[str] = (),
        site_layouts: dict[str, SiteLayout] | None = None,
    ) -> None:
        self.state = state
        self.skip = skip
        self.site_layouts = site_layouts or {}
        self.owners: list[OwnerForward] = []
        self.stack: list[OwnerForward] = []
        self.interceptor: _Interceptor | None = None
        self.tap: Tap | None = None

    @property
    def sites(self) -> list[Site]:
        """The functional sites found so far."""
        return [site for owner in self.owners for site in owner.sites.values()]

    def wrap(self, model: nn.Module) -> None:
        """Make every module that may call dropout as a function an owner."""
        for name, module in model.named_modules():
            dropout = isinstance(module, nn.modules.dropout._DropoutNd)
            builtin = type(module).__module__.startswith("torch.nn.modules")
            attention = isinstance(module, nn.MultiheadAttention)
            if type(module).forward is nn.Module.forward:  # nn.ModuleList has none of its own
                continue
            if dropout or attention or not builtin or any(module.children()):
                owner = OwnerForward(module, name or type(model).__name__, self, exempt=dropout)
                module.__dict__["forward"] = owner
                self.owners.append(owner)

    def tapped(self, tap: Tap) -> RemovableTap:
        """Show every functional site to the probe until the returned handle is removed."""
        handle = RemovableTap(self)
        # A probe in the middle of a forward runs the model from its beginning.
        self.stack, self.tap = [], tap
        return handle

    def finish_probe(self) -> None:
        """Modules stay wrapped that called dropout, are exempt, or that no pass of it reached."""
        check_matches(self.sites, self.skip, "skip")
        check_matches(self.sites, self.site_layouts, "site_layouts")
        stay = [owner for owner in self.owners if owner.sites or owner.exempt or not owner.ran]
        if all(owner.exempt for owner in stay):
            stay = []
        for owner in self.owners:
            if owner not in stay:
                owner.unwrap()
        self.owners = stay

    def unwrap(self) -> None:
        """Give every module its own forward back."""
        for owner in self.owners:
            owner.unwrap()
        self.owners = []

    def new_site(self, owner: str, kind: str, ordinal: int) -> Site:
        """A functional site, named after its owner: `encoder.attention:dropout`."""
        name = f"{owner}:{kind}" + (f"[{ordinal}]" if ordinal else "")
        site = Site(name, f"functional {kind}", state=self.state)
        if any(matches(name, glob) for glob in self.skip):
            site.adaptive, site.reason = False, "skipped on request: ordinary dropout"
        for glob, layout in self.site_layouts.items():
            if matches(name, glob):
                site.stated = layout
        return site


class RemovableTap:
    """Ends what `FunctionalCoverage.tapped` began."""

    def __init__(self, coverage: FunctionalCoverage) -> None:
        self.coverage, self.stack, self.tap = coverage, coverage.stack, coverage.tap

    def remove(self) -> None:
        """Stop showing."""
        self.coverage.stack, self.coverage.tap = self.stack, self.tap


class OwnerForward:
    """Stands in for the forward of one module while it, and the model, are in training."""

    def __init__(
        self, module: nn.Module, name: str, coverage: FunctionalCoverage, *, exempt: bool
    ) -> None:
        self.module, self.name, self.coverage, self.exempt = module, name, coverage, exempt
        self.original = module.__dict__.get("forward")
        self.ran = False
        self.sites: dict[tuple[str, int], Site] = {}
        self.calls: dict[str, int] = {}
        self.differentiable = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward, with its functional dropout made adaptive in training."""
        if not self.module.training:
            return self.own_forward(*args, **kwargs)
        self.ran = True
        stack = self.coverage.stack
        outer = self.calls, self.differentiable
        self.calls, self.differentiable = {}, torch.is_grad_enabled()
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with _Interceptor(self.coverage):
                return self.own_forward(*args, **kwargs)
        finally:
            stack.pop()
            self.calls, self.differentiable = outer

    @property
    def own_forward(self) -> Any:
        """What the module's forward was."""
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

    def next_site(self, kind: str) -> Site:
        """The site of the next call of this kind in the running forward."""
        ordinal = self.calls.get(kind, 0)
        self.calls[kind] = ordinal + 1
        key = (kind, ordinal)
        if key not in self.sites:
            self.sites[key] = self.coverage.new_site(self.name, kind, ordinal)
        return self.sites[key]

    def unwrap(self) -> None:
        """Take this stand-in away."""
        if self.original is None:
            self.module.__dict__.pop("forward", None)
        else:
            self.module.__dict__["forward"] = self.original


class _Interceptor(TorchFunctionMode):
    """Sees every torch function called while an owner runs; acts on the dropping ones."""

    def __init__(self, coverage: FunctionalCoverage) -> None:
        super().__init__()
        self.coverage = coverage
        self.outer = coverage.interceptor

    def __enter__(self) -> _Interceptor:
        self.coverage.interceptor = self
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self.coverage.interceptor = self.outer

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        # The one around a probe in mid-forward leaves what happens inside to the probe's own.
        if handler is None or self is not self.coverage.interceptor:
            return func(*args, **kwargs)
        owner = self.coverage.stack[-1]
        return func(*args, **kwargs) if owner.exempt else handler(owner, func, *args, **kwargs)


def _drop(
    owner: OwnerForward, site: Site, h: Tensor, mask_shape: Sequence[int] | None = None
) -> Tensor:
    """Adaptive dropout at a functional site; during a probe, show the activation instead."""
    tap = owner.coverage.tap
    if tap is None:
        if owner.differentiable and not torch.is_grad_enabled():
            warnings.warn(
                f"{site.name}: drops without gradients in a forward that has them; if this is "
                "reentrant checkpointing of a function, its re-run drops at another rate: use "
                "use_reentrant=False, or make the function a module.",
                SACMWarning,
                stacklevel=2,
            )
        return site.drop(h, mask_shape)
    changed = tap(site, h)
    return h if changed is None else changed


def _dropout(
    owner: OwnerForward,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    if not training:
        return func(input, p, training, inplace)
    site = owner.next_site(func.__name__)
    if not site.adaptive:
        return func(input, p, training, inplace)
    spatial = _SPATIAL.get(func)
    shape = None if spatial is None else feature_mask_shape(input, spatial)
    if inplace:  # a forward may not look at what is returned
        return input.copy_(_drop(owner, site, input.clone(), shape))
    return _drop(owner, site, input, shape)


def _attention(
    owner: OwnerForward,
    func: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    plain = {"attn_mask": attn_mask, "is_causal": is_causal, "scale": scale}
    site = owner.next_site("attention") if dropout_p > 0 else None
    if site is None or not site.adaptive:
        return func(query, key, value, dropout_p=dropout_p, enable_gqa=enable_gqa, **plain)
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(groups, dim=-3) for t in (key, value))
    weights = attention_weights(query, key, attn_mask, is_causal=is_causal, scale=scale)
    return _drop(owner, site, weights) @ value


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """`softmax(q k^T scale + mask)` `[..., Tq, Tk]`; rows that see no key are zero."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    logits = query @ key.transpose(-2, -1) * scale
    if is_causal:
        visible = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
        logits = logits.masked_fill(~visible, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            logits = logits.masked_fill(~attn_mask, -math.inf)
        else:
            logits = logits + attn_mask
    if not is_causal and attn_mask is None:
        return logits.softmax(dim=-1)
    blind = (logits == -math.inf).all(dim=-1, keepdim=True)
    return logits.masked_fill(blind, 0).softmax(dim=-1).masked_fill(blind, 0)


def _multi_head_attention(owner: OwnerForward, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch's own function, its code untouched, with the dropping calls in it led to our sites."""
    names = {
        **func.__globals__,
        # Whoever else listens (an outer model, a default device) must not take the call over.
        "has_torch_function": lambda _: False,
        "dropout": functools.partial(_dropout, owner, F.dropout),
        "scaled_dot_product_attention": functools.partial(
            _attention, owner, F.scaled_dot_product_attention
        ),
    }
    led = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__)
    led.__kwdefaults__ = func.__kwdefaults__
    return led(*args, **kwargs)


def _not_covered(owner: OwnerForward, func: Any, *args: Any, **kwargs: Any) -> Any:
    site = owner.next_site(func.__name__)
    site.adaptive = False
    site.reason = "not covered: alpha dropout keeps mean and variance by its own formula"
    return func(*args, **kwargs)


_SPATIAL = {F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3}
_HANDLERS: dict[Any, Callable[..., Any]] = {
    F.dropout: _dropout,
    F.dropout1d: _dropout,
    F.dropout2d: _dropout,
    F.dropout3d: _dropout,
    F.scaled_dot_product_attention: _attention,
    F.multi_head_attention_forward: _multi_head_attention,
    F.alpha_dropout: _not_covered,
    F.feature_alpha_dropout: _not_covered,
}
