"""Dropout sites: whose the rows of an activation are, and how they drop at the rates."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sacm.core.dropout import Keep, drop_entries
from sacm.core.no_compile import not_compiled
from sacm.errors import ArgumentError, SACMWarning

MODULATOR = "sacm_modulator"  # its name among the model's children, and in the model's state_dict


@dataclass(frozen=True)
class SiteLayout:
    """Where the batch of `B` windows sits in an activation.

    Args:
        dim: Dimension that holds the windows; its size is ``B * fold``.
        fold: Entries of this dimension per window: 1 for `[B, …]`, `C` for `[B*C, …]`.
        batch_major: True: entry ``b * fold + f`` belongs to window ``b`` (`[B*C, …]`). False: entry
            ``f * B + b`` does (`[C*B, …]`).

    Example:
        >>> print(SiteLayout(dim=0, fold=3))
        dim 0 = B*3
    """

    dim: int
    fold: int = 1
    batch_major: bool = True

    def __post_init__(self) -> None:
        if self.fold < 1 or self.dim < 0:
            raise ArgumentError(
                f"a site layout needs dim >= 0 and fold >= 1, got dim={self.dim}, fold={self.fold}."
            )

    def __str__(self) -> str:
        if self.fold == 1:
            return f"dim {self.dim} = B"
        order = f"B*{self.fold}" if self.batch_major else f"{self.fold}*B"
        return f"dim {self.dim} = {order}"

    def fits(self, shape: Sequence[int], batch: int) -> bool:
        """Return whether an activation of this shape can hold `batch` windows in this way."""
        return self.dim < len(shape) and shape[self.dim] == batch * self.fold

    def unfold(self, shape: Sequence[int], batch: int) -> tuple[list[int], int]:
        """Return the shape with `dim` split into batch and fold, and the position of the batch."""
        if self.fold == 1:
            return [*shape], self.dim
        pair = (batch, self.fold) if self.batch_major else (self.fold, batch)
        split = [*shape[: self.dim], *pair, *shape[self.dim + 1 :]]
        return split, self.dim if self.batch_major else self.dim + 1

    def measure(self, values: Tensor, batch: int) -> Tensor:
        """Return the largest of the values `[…, B*fold, …]` that belong to each window, `[B]`."""
        split, position = self.unfold(values.shape, batch)
        return values.reshape(split).movedim(position, 0).reshape(batch, -1).amax(dim=1)

    def drop(self, h: Tensor, keep: Keep, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop `h` `[…, B*fold, …]` at the keep probabilities of its windows.

        `mask_shape` broadcasts over `h`: entries that share a mask entry drop together.
        """
        batch = keep.probability.shape[0]
        split, position = self.unfold(h.shape, batch)
        if mask_shape is not None:  # a feature map that spans windows drops entry by entry
            spans = mask_shape[self.dim] != h.shape[self.dim]
            mask_shape = None if spans else self.unfold(mask_shape, batch)[0]
        keep = keep.along(position, len(split))
        if self.fold == 1:  # the usual case, spared two views that autograd would follow
            return drop_entries(h, keep, mask_shape)
        return drop_entries(h.view(split), keep, mask_shape).reshape(h.shape)


@dataclass(eq=False)
class ModulationState:
    """Rates of the current training forward, shared by the sites and stand-ins of one model.

    They stay for the backward pass, in which activation checkpointing re-runs parts of the model.
    """

    everywhere: bool = False  # also functions that modules call which are no kind of dropout
    skip: Sequence[str] = ()  # names or globs of sites to leave ordinary
    stated: Mapping[str, SiteLayout] = field(default_factory=dict)  # layouts by name or glob
    is_random: bool = False  # in training, although no site drops
    rates: Tensor | None = None  # [B], with its graph
    scores: Tensor | None = None  # [B], detached
    forced: Tensor | None = None  # [B], set by `forced_rates`
    running: bool = False  # a training forward has begun and not returned
    tap: Tap | None = None  # of a probe, which then gets the activations of all sites
    stack: list[Any] = field(default_factory=list)  # stand-ins that intercept, innermost last
    keep_by_device: dict[Any, Keep] = field(default_factory=dict)

    def make_site(self, name: str, kind: str, reason: str = "") -> Site:
        """Make a site of this model, ordinary if there is a reason for it."""
        site = Site(name, kind, adaptive=not reason, reason=reason, state=self)
        if site.adaptive and any(matches(name, glob) for glob in self.skip):
            site.leave_ordinary("skipped on request: ordinary dropout")
        for glob, layout in self.stated.items():
            if matches(name, glob):
                site.stated = layout
        return site

    def begin(self) -> None:
        """Forget the last forward before anything of the next can fail."""
        self.rates = self.scores = None
        self.keep_by_device = {}
        self.running = True

    def keep(self, like: Tensor) -> Keep:
        """Return keep probabilities `q = 1 - p` `[B]` on the device of `like`."""
        assert self.rates is not None
        if self.rates.requires_grad and not self.rates.is_leaf and not torch.is_grad_enabled():
            # Reentrant checkpointing runs a part without gradients now, and with them in backward.
            self.rates, self.keep_by_device = _as_leaf(self.rates), {}
        key = like.device, torch.is_grad_enabled()
        if key not in self.keep_by_device:
            self.keep_by_device[key] = Keep.of(1 - self.rates.to(like.device))
        return self.keep_by_device[key]

    def __getstate__(self) -> dict[str, Any]:
        """Save no rates: copies and checkpoints start between two forwards."""
        kept = self.everywhere, self.skip, self.stated, self.is_random
        return ModulationState(*kept).__dict__


def matches(name: str, glob: str) -> bool:
    """Return whether a glob matches; the brackets of `attention:dropout[1]` may be literal."""
    return name == glob or fnmatch.fnmatchcase(name, glob)


def _as_leaf(rates: Tensor) -> Tensor:
    """Return rates `[B]` for several backward passes: each gradient is passed on at once."""
    leaf = rates.detach().requires_grad_()

    def pass_on(leaf: Tensor) -> None:
        gradient, leaf.grad = leaf.grad, None
        rates.backward(gradient, retain_graph=True)

    leaf.register_post_accumulate_grad_hook(pass_on)
    return leaf


@dataclass(eq=False)
class Site:
    """One place where activations drop, and what is known about it.

    Attributes:
        name: Path of the module; for functional dropout its owner and function, such as
            ``encoder.attention:dropout[1]``.
        kind: Class of the module, or the function.
        adaptive: Whether it drops at the windows' own rates.
        reason: Why it is not adaptive, or a remark.
        reached: Whether the probe saw a call; None before the probe.
    """

    name: str
    kind: str
    adaptive: bool = True
    reason: str = ""
    stated: SiteLayout | None = None  # by the user or the model: the probe looks for no other
    layouts: list[tuple[tuple[int, ...], SiteLayout]] = field(default_factory=list)  # by shape
    reached: bool | None = None
    overwritten: bool = False  # in place after the call: copied for the gradient of the rates
    state: ModulationState = field(default_factory=ModulationState, repr=False)
    warned: bool = field(default=False, repr=False)

    @property
    def layout(self) -> SiteLayout | tuple[SiteLayout, ...] | None:
        """The layout; a tuple for a site that is called in several ways, None before the probe."""
        if self.stated is not None:
            return self.stated
        distinct = tuple(dict.fromkeys(layout for _, layout in self.layouts))
        return distinct[0] if len(distinct) == 1 else distinct or None

    def leave_ordinary(self, reason: str) -> None:
        """Make this a site that drops at its own fixed rate."""
        self.adaptive, self.reason = False, reason

    def covers(self) -> bool:
        """Return whether to drop at the windows' rates now; warn once if there are none."""
        if not self.adaptive or self.state.tap is not None:
            return self.adaptive
        if self.state.rates is not None and (
            self.state.running or torch._C._current_graph_task_id() != -1  # a re-run in backward
        ):
            return True
        self.warn(
            "is called outside a training forward of the attached model, so there are no rates and "
            "it drops as before; call the model itself, or attach to this part of it"
        )
        return False

    def drop(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop an activation at the rates of the current training forward; show it to a probe."""
        if self.state.tap is not None:
            return self.state.tap(self, h)
        if 0 in h.shape:
            return h.clone()
        keep = self.state.keep(h)
        h = h.clone() if self.overwritten else h
        count = keep.probability.shape[0]
        known = self.known_layouts(h.shape, count)
        if len(known) == 1:
            return known[0].drop(h, keep, mask_shape)
        if count > 1:  # a single window owns everything
            self.warn(
                f"an activation {list(h.shape)} holds {count} windows in no way that the probe has "
                "seen, so all of them drop at their mean rate here; state the layout with "
                f"site_layouts={{{self.name!r}: SiteLayout(dim=…, fold=…)}}"
            )
        return drop_entries(h, Keep.of(keep.probability.mean()), mask_shape)

    def drop_as(self, kind: int, h: Tensor, *, inplace: bool) -> Tensor:
        """Drop single entries, or whole feature maps of `kind` dimensions if `kind` is not 0."""
        mask_shape: Sequence[int] | None = None
        if kind:
            lead = h.shape[:1] if kind == 1 and h.dim() == 2 else h.shape[:2]  # [C, L] or [B, C, …]
            mask_shape = (*lead, *(1,) * (h.dim() - len(lead)))
        if not inplace:
            return self.drop(h, mask_shape)
        # The gradient of the rates needs the activation as it was, so a copy of it drops.
        return h.copy_(self.drop(h.clone(), mask_shape))

    def known_layouts(self, shape: Sequence[int], batch: int) -> list[SiteLayout]:
        """Return the known layouts that fit an activation of this shape with `batch` windows."""
        if self.stated is not None:
            return [self.stated] if self.stated.fits(shape, batch) else []
        fitting = [
            (seen, layout)
            for seen, layout in self.layouts
            if len(seen) == len(shape) and layout.fits(shape, batch)
        ]
        layouts = dict.fromkeys(layout for _, layout in fitting)
        if len(layouts) > 1:  # the other dimensions tell them apart
            layouts = dict.fromkeys(
                layout
                for seen, layout in fitting
                if all(seen[d] == shape[d] for d in range(len(seen)) if d != layout.dim)
            )
        return list(layouts)

    @not_compiled
    def warn(self, text: str) -> None:
        """Warn about this site, once."""
        if not self.warned:
            self.warned = True
            warnings.warn(f"{self.name} ({self.kind}): {text}.", SACMWarning, stacklevel=2)


Tap = Callable[[Site, Tensor], Tensor]  # sees a site's activation, and returns what it becomes
