"""Dropout sites: what one is, and the adaptive modules that take the place of torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from sacm.errors import ArgumentError, LayoutError
from sacm.inject.layout import SiteLayout
from sacm.inject.state import ModulationState


@dataclass(eq=False)
class Site:
    """One place where activations drop, and what is known about it.

    `layouts` holds the shapes the probe saw, at its own small batch, with where the windows sit in
    each. `stated` is a layout given by the user; it ends all doubt. `reached` is None before the
    probe. `overwritten`: the model changes the activation in place after the call, while the
    gradient of the rates needs it as it was.
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

    @property
    def layout(self) -> SiteLayout | tuple[SiteLayout, ...] | None:
        """Where the windows sit: one layout, several for a site called in several ways, or None."""
        if self.stated is not None:
            return self.stated
        distinct = tuple(dict.fromkeys(layout for _, layout in self.layouts))
        return distinct[0] if len(distinct) == 1 else distinct or None

    def learn(self, shape: Sequence[int], layout: SiteLayout) -> None:
        """Remember where the probe found the windows in an activation of this shape."""
        if (tuple(shape), layout) not in self.layouts:
            self.layouts.append((tuple(shape), layout))

    def drop(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """Adaptive dropout of an activation, at the rates of the current training forward."""
        keep = self.state.keep(h)
        if keep is None:
            if self.state.probing:
                return h
            raise ArgumentError(
                f"{self.name} ({self.kind}): called outside a training forward of the attached "
                "model, so there are no rates; call the model itself, or attach to this part of it."
            )
        layout = self.layout_for(h.shape, keep.probability.shape[0])
        return layout.drop(h.clone() if self.overwritten else h, keep, mask_shape)

    def drop_into(self, h: Tensor, mask_shape: Sequence[int] | None = None) -> Tensor:
        """The same in place, as `inplace=True` asks for: a model may not look at what is returned.

        The gradient of the rates needs the activation as it was, so it is copied first.
        """
        return h.copy_(self.drop(h.clone(), mask_shape))

    def layout_for(self, shape: Sequence[int], batch: int) -> SiteLayout:
        """The layout of an activation of this shape that holds `batch` windows."""
        if self.stated is None and len(self.layouts) == 1:  # the usual case, without building sets
            seen, layout = self.layouts[0]
            if len(seen) == len(shape) and layout.fits(shape, batch):
                return layout
        found = self._known(shape, batch)
        if not found and self.stated is None and self.state.call is not None:
            self.state.call.probe_again(self)
            found = self._known(shape, batch)
        if not found:
            raise self.unresolved(shape, f"does not hold {batch} windows in any known way")
        if len(found) > 1 and batch > 1:  # a single window owns everything, in whatever way
            ways = " and as ".join(sorted(map(str, found)))
            raise self.unresolved(shape, f"is called in several ways of this shape, as {ways}")
        return found.pop()

    def _known(self, shape: Sequence[int], batch: int) -> set[SiteLayout]:
        """The layouts that explain an activation of this shape."""
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

    def unresolved(self, shape: Sequence[int], why: str) -> LayoutError:
        """The error that names this site and the ways out."""
        return LayoutError(
            f"{self.name} ({self.kind}): an activation {list(shape)} {why}; state it with "
            f"site_layouts={{{self.name!r}: SiteLayout(dim=…, fold=…)}}, or leave this site as "
            f"ordinary dropout with skip=[{self.name!r}]."
        )


Tap = Callable[[Site, Tensor], Tensor | None]  # sees a site's activation, and may replace it


class AdaptiveDropout(nn.Dropout):
    """`nn.Dropout` whose rate in training is each window's own; in evaluation `nn.Dropout`."""

    sacm_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """Same shape in and out."""
        if not self.training:
            return super().forward(input)
        return self.sacm_site.drop_into(input) if self.inplace else self.sacm_site.drop(input)


def feature_mask_shape(h: Tensor, spatial: int) -> tuple[int, ...]:
    """One mask entry per row and feature map, as torch's own; Dropout1d takes `[C, L]` too."""
    lead = h.shape[:1] if spatial == 1 and h.dim() == 2 else h.shape[:2]
    return (*lead, *(1,) * (h.dim() - len(lead)))


class _AdaptiveFeatureDropout(nn.Module):
    """Whole feature maps drop together: one mask entry per row and channel."""

    sacm_site: Site
    spatial: int
    inplace: bool

    def forward(self, input: Tensor) -> Tensor:
        """Same shape in and out."""
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


ADAPTIVE: dict[type[nn.Module], type[nn.Module]] = {
    nn.Dropout: AdaptiveDropout,
    nn.Dropout1d: AdaptiveDropout1d,
    nn.Dropout2d: AdaptiveDropout2d,
    nn.Dropout3d: AdaptiveDropout3d,
}
ORIGINAL: dict[type[nn.Module], type[nn.Module]] = {new: old for old, new in ADAPTIVE.items()}


class InsertedSite:
    """A forward hook that drops the output of a module which has no dropout of its own."""

    def __init__(self, site: Site, host: nn.Module) -> None:
        self.sacm_site, self.host = site, host

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        """Replace the module's output in training; its first tensor if it returns a tuple."""
        if not module.training:
            return None
        if isinstance(output, tuple):
            return (self.sacm_site.drop(output[0]), *output[1:])
        return self.sacm_site.drop(output)
