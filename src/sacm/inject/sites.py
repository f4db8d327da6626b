"""Dropout sites: whose the rows of an activation are, and how they drop at the rates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

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

    Raises:
        ArgumentError: `dim` is negative or `fold` below 1.

    Example:
        >>> layout = SiteLayout(dim=0, fold=3)
        >>> print(layout, layout.owners(batch=2).tolist())
        dim 0 = B*3 [0, 0, 0, 1, 1, 1]
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

    def owners(self, batch: int) -> Tensor:
        """Return the window that owns each entry of dimension `dim`, `[batch * fold]`."""
        entries = torch.arange(batch * self.fold)
        return entries // self.fold if self.batch_major else entries % batch

    def unfold(self, shape: Sequence[int], batch: int) -> tuple[list[int], int]:
        """Return the shape with `dim` split into batch and fold, and the position of the batch."""
        if self.fold == 1:
            return [*shape], self.dim
        pair = (batch, self.fold) if self.batch_major else (self.fold, batch)
        split = [*shape[: self.dim], *pair, *shape[self.dim + 1 :]]
        return split, self.dim if self.batch_major else self.dim + 1

    def drop(self, h: Tensor, keep: Keep, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop `h` `[…, B*fold, …]` at the keep probabilities of its windows.

        `mask_shape` broadcasts over `h`: entries that share a mask entry drop together.
        """
        batch = keep.probability.shape[0]
        split, position = self.unfold(h.shape, batch)
        if mask_shape is not None:
            mask = list(mask_shape)
            if mask[self.dim] == h.shape[self.dim]:
                mask_shape, _ = self.unfold(mask, batch)
            else:  # a feature map that spans windows drops window by window
                mask_shape = [*mask[: self.dim], *[1] * (len(split) - len(mask)), *mask[self.dim :]]
                mask_shape[position] = batch
        keep = keep.along(position, len(split))
        if self.fold == 1:  # the usual case, spared two views that autograd would follow
            return drop_entries(h, keep, mask_shape)
        return drop_entries(h.view(split), keep, mask_shape).reshape(h.shape)


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
    tap: Tap | None = None  # of a probe, which then gets the activations of all sites
    keep_by_device: dict[Any, Keep] = field(default_factory=dict)

    def begin(self) -> None:
        """Forget the last forward before anything of the next can fail."""
        self.rates = self.scores = None
        self.roots, self.repeated = (), False
        self.keep_by_device = {}
        self.running = True

    def is_active(self) -> bool:
        """Return whether rates are valid now: in a training forward, its backward, or a probe."""
        if self.tap is not None or self.rates is None:
            return self.tap is not None
        return self.running or torch._C._current_graph_task_id() != -1  # -1 outside of backward

    def keep(self, rates: Tensor, like: Tensor) -> Keep:
        """Return keep probabilities `q = 1 - p` `[B]` on the device of `like`."""
        if rates.requires_grad and not torch.is_grad_enabled() and not self.repeated:
            # Reentrant checkpointing runs a part without gradients now, and with them in backward.
            with torch.enable_grad():
                self.rates = rates = _RetainedRates.apply([rates], *self._sources())
            self.repeated, self.keep_by_device = True, {}
        key = like.device, torch.is_grad_enabled()
        if key not in self.keep_by_device:
            self.keep_by_device[key] = Keep.of(1 - rates.to(like.device))
        return self.keep_by_device[key]

    def _sources(self) -> Iterator[Tensor]:
        """Yield the tensors whose gradients come from the rates; seldom needed, so not kept."""
        for root in self.roots:
            tensors = root.parameters() if isinstance(root, nn.Module) else [root]
            yield from (tensor for tensor in tensors if tensor.requires_grad)

    def __getstate__(self) -> dict[str, Any]:
        """Save nothing: copies and checkpoints start between two forwards."""
        return ModulationState().__dict__


class _RetainedRates(torch.autograd.Function):
    """Gives rates `[B]` a graph that survives several backward passes.

    Reentrant activation checkpointing runs a backward of its own for every part of a model. The
    first one would free the graph from the rates to their sources, which all parts share. So the
    rates are kept with their graph as an attribute, where autograd does not free it.
    """

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

    def leave_ordinary(self, reason: str) -> None:
        """Make this a site that drops at its own fixed rate."""
        self.adaptive, self.reason = False, reason

    def covers(self) -> bool:
        """Return whether to drop at the windows' rates now; warn once if there are none."""
        if not self.adaptive or self.state.is_active():
            return self.adaptive
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
        assert self.state.rates is not None
        keep = self.state.keep(self.state.rates, h)
        h = h.clone() if self.overwritten else h
        count = keep.probability.shape[0]
        known = self.known_layouts(h.shape, count)
        if len(known) == 1 or (known and count == 1):  # a single window owns everything
            return known[0].drop(h, keep, mask_shape)
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
        if len(fitting) < 2:
            return [layout for _, layout in fitting]
        distinct = list(dict.fromkeys(layout for _, layout in fitting))
        if len(distinct) > 1:  # several ways of being called: the other dimensions tell them apart
            distinct = [
                layout
                for seen, layout in fitting
                if all(seen[d] == shape[d] for d in range(len(seen)) if d != layout.dim)
            ]
        return list(dict.fromkeys(distinct))

    @not_compiled
    def warn(self, text: str) -> None:
        """Warn about this site, once."""
        if not self.warned:
            self.warned = True
            warnings.warn(f"{self.name} ({self.kind}): {text}.", SACMWarning, stacklevel=2)


Tap = Callable[[Site, Tensor], Tensor]  # sees a site's activation, and returns what it becomes
