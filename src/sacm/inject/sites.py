"""Dropout sites: the rates of the running forward, and the adaptive classes that use them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sacm.core.dropout import Keep, drop_entries
from sacm.core.no_compile import not_compiled
from sacm.errors import SACMWarning
from sacm.inject.layout import SiteLayout

MODULATOR = "sacm_modulator"  # its name among the model's children, and in the model's state_dict
SKIPPED = "skipped on request: ordinary dropout"
FROZEN = "frozen: nothing around it is trained"


@dataclass
class ModulationState:
    """Rates and scores of the current training forward; never copied or saved with the model.

    The rates stay after a forward, because activation checkpointing re-runs parts of the model
    during the backward pass.
    """

    rates: Tensor | None = None  # [B], with its graph
    roots: Sequence[Tensor | nn.Module] = ()  # what that graph leads to
    repeated: bool = False  # whether the backward of the rates may run more than once
    scores: Tensor | None = None  # [B], detached
    forced: Tensor | None = None  # [B], set by `forced_rates`
    running: bool = False  # a training forward has begun and not returned
    probing: bool = False
    keep_by_device: dict[Any, Keep] = field(default_factory=dict)

    def begin(self) -> None:
        """Forget the last forward before anything of the next can fail."""
        self.rates = self.scores = None
        self.roots, self.repeated = (), False
        self.keep_by_device = {}
        self.running = True

    def is_active(self) -> bool:
        """Return whether rates are valid now: in a training forward, its backward, or a probe."""
        return self.probing or (self.rates is not None and (self.running or _in_backward()))

    def keep(self, like: Tensor) -> Keep | None:
        """Return keep probabilities `q = 1 - p` `[B]` on the device of `like`; None in a probe."""
        if self.rates is None:
            return None
        if self.rates.requires_grad and not torch.is_grad_enabled() and not self.repeated:
            # Reentrant checkpointing runs a part without gradients now, and with them in backward.
            self.rates, self.repeated = _retain_rates(self.rates, [*self._sources()]), True
            self.keep_by_device = {}
        key = like.device, torch.is_grad_enabled()
        if key not in self.keep_by_device:
            self.keep_by_device[key] = Keep.of(1 - self.rates.to(like.device))
        return self.keep_by_device[key]

    def _sources(self) -> Iterator[Tensor]:
        """Yield the tensors whose gradients come from the rates; seldom needed, so not kept."""
        for root in self.roots:
            tensors = root.parameters() if isinstance(root, nn.Module) else [root]
            yield from (tensor for tensor in tensors if tensor.requires_grad)

    @contextmanager
    def passive(self) -> Iterator[None]:
        """Let sites pass activations on unchanged while a probe runs."""
        before = self.rates, self.probing
        self.rates, self.probing = None, True
        try:
            yield
        finally:
            self.rates, self.probing = before

    def __getstate__(self) -> dict[str, Any]:
        """Save nothing: copies and checkpoints start between two forwards."""
        return ModulationState().__dict__


def _in_backward() -> bool:
    """Return whether autograd runs a backward pass now."""
    return torch._C._current_graph_task_id() != -1


def _retain_rates(rates: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """Return the same rates `[B]` with a graph that survives several backward passes.

    Reentrant activation checkpointing runs a backward of its own for every part of a model. The
    first one would free the graph from the rates to their `sources`, which all parts share.
    """
    with torch.enable_grad():
        retained: Tensor = _RetainedRates.apply([rates], *sources)
    return retained


class _RetainedRates(torch.autograd.Function):
    """Keeps the rates with their graph as an attribute, where autograd does not free it."""

    @staticmethod
    def forward(ctx: Any, hidden: list[Tensor], *sources: Tensor) -> Tensor:
        (ctx.rates,) = hidden
        ctx.sources = sources
        return hidden[0].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = torch.autograd.grad(
            ctx.rates, ctx.sources, grad, retain_graph=True, allow_unused=True
        )
        return None, *gradients


@dataclass(eq=False)
class Site:
    """One place where activations drop, and what is known about it.

    Attributes:
        name: Path of the module; for functional dropout its owner and function, such as
            ``encoder.attention:dropout[1]``.
        kind: Class of the module, or the function.
        adaptive: Whether it drops at the windows' own rates.
        reason: Why it is not adaptive, or a remark.
        stated: Layout given by the user or the model; the probe does not look for another.
        layouts: Shapes seen by the probe, each with its layout.
        reached: Whether the probe saw a call; None before the probe.
        overwritten: The model changes the activation in place after the call, so it is copied for
            the gradient of the rates.
        state: Rates of the running forward, shared by all sites of the model.

    Example:
        >>> site = Site("encoder.drop", "Dropout", stated=SiteLayout(dim=0))
        >>> print(site.name, site.adaptive, site.layout)
        encoder.drop True dim 0 = B
    """

    name: str
    kind: str
    adaptive: bool = True
    reason: str = ""
    stated: SiteLayout | None = None
    layouts: list[tuple[tuple[int, ...], SiteLayout]] = field(default_factory=list)
    reached: bool | None = None
    overwritten: bool = False
    state: ModulationState = field(default_factory=ModulationState, repr=False)
    warned: bool = field(default=False, repr=False)

    @property
    def layout(self) -> SiteLayout | tuple[SiteLayout, ...] | None:
        """The layout; a tuple for a site that is called in several ways, None before the probe."""
        if self.stated is not None:
            return self.stated
        distinct = tuple(dict.fromkeys(layout for _, layout in self.layouts))
        return distinct[0] if len(distinct) == 1 else distinct or None

    def learn(self, shape: Sequence[int], layout: SiteLayout) -> None:
        """Remember the layout that the probe found in an activation of this shape."""
        if (tuple(shape), layout) not in self.layouts:
            self.layouts.append((tuple(shape), layout))

    def leave_ordinary(self, reason: str) -> None:
        """Make this a site that drops at its own fixed rate."""
        self.adaptive, self.reason = False, reason

    def has_rates(self) -> bool:
        """Return whether there are rates to drop at; warn once if there are none."""
        if self.state.is_active():
            return True
        self._warn(
            "is called outside a training forward of the attached model, so there are no rates and "
            "it drops as before; call the model itself, or attach to this part of it"
        )
        return False

    def drop(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop an activation at the rates of the current training forward."""
        keep = self.state.keep(h)
        if keep is None:  # no rates while a probe runs
            return h
        if 0 in h.shape:
            return h.clone()
        h = h.clone() if self.overwritten else h
        layout = self.layout_for(h.shape, keep.probability.shape[0])
        if layout is None:
            return self._drop_alike(h, keep, mask_shape)
        return layout.drop(h, keep, mask_shape)

    def _drop_alike(self, h: Tensor, keep: Keep, mask_shape: Sequence[int] | None) -> Tensor:
        """Drop all windows at their mean rate, for an activation of unknown layout."""
        self._warn(
            f"an activation {list(h.shape)} holds {keep.probability.shape[0]} windows in no way "
            "that the probe has seen, so all of them drop at their mean rate here; state the "
            f"layout with site_layouts={{{self.name!r}: SiteLayout(dim=…, fold=…)}}"
        )
        return drop_entries(h, Keep.of(keep.probability.mean()), mask_shape)

    @not_compiled
    def _warn(self, text: str) -> None:
        """Warn about this site, once."""
        if not self.warned:
            self.warned = True
            warnings.warn(f"{self.name} ({self.kind}): {text}.", SACMWarning, stacklevel=2)

    def layout_for(self, shape: Sequence[int], batch: int) -> SiteLayout | None:
        """Return the layout of an activation that holds `batch` windows; None if unknown."""
        if self.stated is not None:
            return self.stated if self.stated.fits(shape, batch) else None
        if len(self.layouts) == 1:  # the usual case, without building sets
            seen, layout = self.layouts[0]
            if len(seen) == len(shape) and layout.fits(shape, batch):
                return layout
        known = self.known_layouts(shape, batch)
        if len(known) == 1 or batch == 1:  # a single window owns everything, in whatever way
            return next(iter(known), None)
        return None

    def known_layouts(self, shape: Sequence[int], batch: int) -> set[SiteLayout]:
        """Return the known layouts that fit an activation of this shape."""
        if self.stated is not None:
            return {self.stated} if self.stated.fits(shape, batch) else set()
        fitting = [
            (seen, layout)
            for seen, layout in self.layouts
            if len(seen) == len(shape) and layout.fits(shape, batch)
        ]
        alike = {  # several ways of being called: the other dimensions tell them apart
            layout
            for seen, layout in fitting
            if all(seen[d] == shape[d] for d in range(len(seen)) if d != layout.dim)
        }
        distinct = {layout for _, layout in fitting}
        return alike if len(distinct) > 1 else distinct

    def describe_problem(self, shape: Sequence[int], why: str) -> str:
        """Say why the layout of an activation at this site is not known, and what to do."""
        return (
            f"{self.name} ({self.kind}): an activation {list(shape)} {why}; "
            f"state it with site_layouts={{{self.name!r}: SiteLayout(dim=…, fold=…)}}"
        )


Tap = Callable[[Site, Tensor], Tensor | None]  # sees a site's activation, and may replace it


def feature_mask_shape(h: Tensor, spatial: int) -> tuple[int, ...]:
    """Return the shape of a mask with one entry per row and feature map, as torch draws it.

    `Dropout1d` takes `[C, L]` too.
    """
    lead = h.shape[:1] if spatial == 1 and h.dim() == 2 else h.shape[:2]
    return (*lead, *(1,) * (h.dim() - len(lead)))


class _Adaptive(nn.Module):
    """Drops at each window's own rate in training; in evaluation as the torch class beside it."""

    sacm_site: Site
    inplace: bool
    spatial = 0  # dimensions of the feature maps that drop as a whole; 0 for single entries

    def forward(self, input: Tensor) -> Tensor:
        """Drop an activation: single entries, or whole feature maps of `[B, C, …]`."""
        site = self.sacm_site
        if not self.training or not site.has_rates():
            return super().forward(input)  # type: ignore[no-any-return]
        mask_shape = feature_mask_shape(input, self.spatial) if self.spatial else None
        if not self.inplace:
            return site.drop(input, mask_shape)
        # The gradient of the rates needs the activation as it was, so a copy of it drops.
        return input.copy_(site.drop(input.clone(), mask_shape))


class AdaptiveDropout(_Adaptive, nn.Dropout):
    """Adaptive `nn.Dropout`."""


class AdaptiveDropout1d(_Adaptive, nn.Dropout1d):
    """Adaptive `nn.Dropout1d`."""

    spatial = 1


class AdaptiveDropout2d(_Adaptive, nn.Dropout2d):
    """Adaptive `nn.Dropout2d`."""

    spatial = 2


class AdaptiveDropout3d(_Adaptive, nn.Dropout3d):
    """Adaptive `nn.Dropout3d`."""

    spatial = 3


ADAPTIVE: dict[type[nn.Module], type[nn.Module]] = {
    nn.Dropout: AdaptiveDropout,
    nn.Dropout1d: AdaptiveDropout1d,
    nn.Dropout2d: AdaptiveDropout2d,
    nn.Dropout3d: AdaptiveDropout3d,
}
ORIGINAL: dict[type[nn.Module], type[nn.Module]] = {new: old for old, new in ADAPTIVE.items()}


def swap_class(module: nn.Module, site: Site) -> None:
    """Make a torch dropout module adaptive by changing its class; see `inject.attach`."""
    module.__class__ = ADAPTIVE[type(module)]
    module.__dict__["sacm_site"] = site


def restore_class(module: nn.Module) -> None:
    """Make an adaptive module a torch dropout module again."""
    module.__class__ = ORIGINAL[type(module)]
    del module.__dict__["sacm_site"]


class InsertedSite:
    """A forward hook that drops the output of a module which has no dropout of its own."""

    def __init__(self, site: Site, host: nn.Module) -> None:
        self.sacm_site, self.host = site, host

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        """Drop the module's output in training; the first tensor if it returns a tuple."""
        site = self.sacm_site
        if not module.training or not site.adaptive or not site.has_rates():
            return None
        if isinstance(output, tuple):
            return (site.drop(output[0]), *output[1:])
        return site.drop(output)


class TapHook:
    """A forward hook that shows a site's activation to the probe and may replace it."""

    def __init__(self, tap: Tap, site: Site) -> None:
        self.tap, self.site = tap, site

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        changed = self.tap(self.site, first)
        if changed is None:
            return None
        return (changed, *output[1:]) if isinstance(output, tuple) else changed
