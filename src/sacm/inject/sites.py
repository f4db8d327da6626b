"""Dropout sites, and the adaptive classes that take the place of torch's dropout classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.inject.layout import SiteLayout
from sacm.inject.state import ModulationState
from sacm.inject.unresolved import Unresolved

SKIPPED = "skipped on request: ordinary dropout"
_SELU_LIMIT = -1.7580993408473766  # what SELU tends to, and what alpha dropout sets entries to


@dataclass(eq=False)
class Site:
    """One place where activations drop, and what is known about it.

    Attributes:
        name: Path of the module; for functional dropout its owner and function, such as
            ``encoder.attention:dropout[1]``.
        kind: Class of the module, or the function.
        adaptive: Whether it drops at the windows' own rates.
        reason: Why it is not adaptive, or a remark.
        stated: Layout given by the user; it is neither probed nor verified.
        layouts: Shapes seen by the probe at its small batch, each with its layout.
        reached: Whether the probe saw a call; None before the probe.
        overwritten: The model changes the activation in place after the call, so it is copied for
            the gradient of the rates.
        channel_dim: The dimension that keeps the channels apart, after unfolding; None if they mix.
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
    channel_dim: int | None = None
    state: ModulationState = field(default_factory=ModulationState, repr=False)

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

    def drop(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop an activation at the rates of the current training forward."""
        keep = self.state.keep(h)
        if keep is None:
            if self.state.probing:
                return h
            raise ArgumentError(
                f"{self.name} ({self.kind}): called outside a training forward of the attached "
                "model, so there are no rates; call the model itself, or attach to this part of it."
            )
        if 0 in h.shape:
            return h.clone()
        layout = self.layout_for(h.shape, keep.probability.shape[0])
        h = h.clone() if self.overwritten else h
        channels = None if self.channel_dim is None else self.state.keep_channels(h)
        if channels is not None and mask_shape is None and self.channel_dim is not None:
            return layout.drop_channels(h, channels, self.channel_dim)
        return layout.drop(h, keep, mask_shape)

    def drop_alpha(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop to the lower limit of SELU, which keeps the mean and the variance of its output.

        Windows drop at one rate each, also where channels have rates of their own.

        With `m` the limit, alpha dropout is `a (B h + (1 - B) m) - a m p` for
        `a = (q (1 + p m²))^(-1/2)`. That is `a q ((h - m) B / q + m)`, an ordinary dropout inside.
        """
        keep = self.state.keep(h)
        if keep is None or 0 in h.shape:
            return self.drop(h)
        q = keep.probability
        layout = self.layout_for(h.shape, q.shape[0])
        dropped = layout.drop(h - _SELU_LIMIT, keep, mask_shape)
        factor = (q / (1 + (1 - q) * _SELU_LIMIT**2)).sqrt()
        return (dropped + _SELU_LIMIT) * layout.spread(factor, h.dim()).to(h.dtype)

    def drop_into(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Drop in place, as `inplace=True` asks for; a model may not use what is returned.

        The gradient of the rates needs the activation as it was, so it is copied first.
        """
        return h.copy_(self.drop(h.clone(), mask_shape))

    def layout_for(self, shape: Sequence[int], batch: int) -> SiteLayout:
        """Return the layout of an activation of this shape that holds `batch` windows."""
        if self.stated is None and len(self.layouts) == 1:  # the usual case, without building sets
            seen, layout = self.layouts[0]
            if len(seen) == len(shape) and layout.fits(shape, batch):
                return layout
        found = self.known_layouts(shape, batch)
        if not found and self.stated is None and self.state.call is not None:
            self.state.call.probe_again(self)
            found = self.known_layouts(shape, batch)
        if not found:
            raise self.unresolved(shape, f"does not hold {batch} windows in any known way").error()
        if len(found) > 1 and batch > 1:  # a single window owns everything, in whatever way
            ways = " and as ".join(sorted(map(str, found)))
            why = f"is called in several ways of this shape, as {ways}"
            raise self.unresolved(shape, why).error()
        return found.pop()

    def known_layouts(self, shape: Sequence[int], batch: int) -> set[SiteLayout]:
        """Return the known layouts that fit an activation of this shape."""
        if self.stated is not None:
            return {self.stated} if self.stated.fits(shape, batch) else set()
        fitting = [
            (seen, layout)
            for seen, layout in self.layouts
            if len(seen) == len(shape) and layout.fits(shape, batch)
        ]
        distinct = {layout for _, layout in fitting}
        if len(distinct) > 1:  # several ways of being called: the other dimensions tell them apart
            distinct = {
                layout
                for seen, layout in fitting
                if all(seen[d] == shape[d] for d in range(len(seen)) if d != layout.dim)
            }
        return distinct

    def unresolved(self, shape: Sequence[int], why: str) -> Unresolved:
        """Describe why the layout of an activation at this site is not known."""
        return Unresolved(self.name, self.kind, tuple(shape), why)


Tap = Callable[[Site, Tensor], Tensor | None]  # sees a site's activation, and may replace it


class AdaptiveDropout(nn.Dropout):
    """`nn.Dropout` whose rate in training is each window's own; in evaluation `nn.Dropout`."""

    sacm_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """Drop an activation of any shape."""
        if not self.training:
            return super().forward(input)
        return self.sacm_site.drop_into(input) if self.inplace else self.sacm_site.drop(input)


def feature_mask_shape(h: Tensor, spatial: int) -> tuple[int, ...]:
    """Return the shape of a mask with one entry per row and feature map, as torch draws it.

    `Dropout1d` takes `[C, L]` too.
    """
    lead = h.shape[:1] if spatial == 1 and h.dim() == 2 else h.shape[:2]
    return (*lead, *(1,) * (h.dim() - len(lead)))


class _AdaptiveFeatureDropout(nn.Module):
    """Whole feature maps drop together: one mask entry per row and channel."""

    sacm_site: Site
    spatial: int
    inplace: bool

    def forward(self, input: Tensor) -> Tensor:
        """Drop whole feature maps of an activation `[B, C, …]`."""
        if not self.training:
            return super().forward(input)  # type: ignore[no-any-return]  # the torch class beside this one
        shape = feature_mask_shape(input, self.spatial)
        site = self.sacm_site
        return site.drop_into(input, shape) if self.inplace else site.drop(input, shape)


class AdaptiveDropout1d(_AdaptiveFeatureDropout, nn.Dropout1d):
    """Adaptive `nn.Dropout1d`."""

    spatial = 1


class AdaptiveDropout2d(_AdaptiveFeatureDropout, nn.Dropout2d):
    """Adaptive `nn.Dropout2d`."""

    spatial = 2


class AdaptiveDropout3d(_AdaptiveFeatureDropout, nn.Dropout3d):
    """Adaptive `nn.Dropout3d`."""

    spatial = 3


class AdaptiveAlphaDropout(nn.AlphaDropout):
    """Adaptive `nn.AlphaDropout`."""

    sacm_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """Drop an activation of any shape to the lower limit of SELU."""
        return self.sacm_site.drop_alpha(input) if self.training else super().forward(input)


class AdaptiveFeatureAlphaDropout(nn.FeatureAlphaDropout):
    """Adaptive `nn.FeatureAlphaDropout`."""

    sacm_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """Drop whole feature maps of an activation `[B, C, …]` to the lower limit of SELU."""
        if not self.training:
            return super().forward(input)
        return self.sacm_site.drop_alpha(input, feature_mask_shape(input, 2))


ADAPTIVE: dict[type[nn.Module], type[nn.Module]] = {
    nn.Dropout: AdaptiveDropout,
    nn.Dropout1d: AdaptiveDropout1d,
    nn.Dropout2d: AdaptiveDropout2d,
    nn.Dropout3d: AdaptiveDropout3d,
    nn.AlphaDropout: AdaptiveAlphaDropout,
    nn.FeatureAlphaDropout: AdaptiveFeatureAlphaDropout,
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
        if not module.training or not self.sacm_site.adaptive:
            return None
        if isinstance(output, tuple):
            return (self.sacm_site.drop(output[0]), *output[1:])
        return self.sacm_site.drop(output)


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
