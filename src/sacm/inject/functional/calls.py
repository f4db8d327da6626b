"""The dropping calls that the forward of one module makes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from sacm.errors import SACMWarning
from sacm.inject.functional.shared import Interception
from sacm.inject.sites import Site

WITHOUT_RATE = "rate 0: attention without dropout stays as it is"


class OwnerCalls:
    """Sites of one owner, found by counting its calls of each dropping function.

    Args:
        name: Path of the module, or the model's class name for the model itself.
        shared: What all owners of the model share.
        own_site: Site of the module itself if it is a kind of `nn.Dropout`; its first dropping call
            belongs to this site.
        is_dropout: The module is a kind of `nn.Dropout`; it is exempt while its site is ordinary.
    """

    def __init__(
        self, name: str, shared: Interception, *, own_site: Site | None, is_dropout: bool
    ) -> None:
        self.name, self.shared, self.own_site, self.is_dropout = name, shared, own_site, is_dropout
        self.sites: dict[tuple[str, int], Site] = {}
        self.counts: dict[str, int] = {}
        self.differentiable = True

    @property
    def exempt(self) -> bool:
        """True where dropout stays ordinary although it is called as a function."""
        return self.is_dropout and (self.own_site is None or not self.own_site.adaptive)

    def next_site(self, kind: str) -> Site:
        """Return the site of the next call of this kind in the running forward."""
        ordinal = self.counts.get(kind, 0)
        self.counts[kind] = ordinal + 1
        key = (kind, ordinal)
        if key not in self.sites:
            first = self.own_site is not None and not self.sites
            made = self.own_site if first else self.shared.make_site(self.name, kind, ordinal)
            assert made is not None
            self.sites[key] = made
        return self.sites[key]

    def list_undropped_attention(self) -> None:
        """List attention that is called with a rate of 0; one line for the owner."""
        key = ("attention_without_dropout", 0)
        if key not in self.sites:
            site = self.shared.make_site(self.name, *key)
            site.leave_ordinary(WITHOUT_RATE)
            self.sites[key] = site

    def drop(
        self,
        site: Site,
        h: Tensor,
        mask_shape: Sequence[int] | None = None,
        *,
        alpha: bool = False,
    ) -> Tensor:
        """Drop adaptively at a functional site; during a probe, show the activation instead."""
        tap = self.shared.tap
        if tap is None:
            if self.differentiable and not torch.is_grad_enabled():
                warnings.warn(
                    f"{site.name}: drops without gradients in a forward that has them; if this is "
                    "reentrant checkpointing of a function, its re-run drops at another rate: use "
                    "use_reentrant=False, or make the function a module.",
                    SACMWarning,
                    stacklevel=2,
                )
            return site.drop_alpha(h, mask_shape) if alpha else site.drop(h, mask_shape)
        changed = tap(site, h)
        return h if changed is None else changed
