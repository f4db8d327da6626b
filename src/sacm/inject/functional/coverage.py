"""All owners of one model: wrapping them, watching them in a probe, unwrapping them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from sacm.inject.discover import check_matches
from sacm.inject.functional.owner import OwnerForward
from sacm.inject.functional.recognised import RecognisedForward
from sacm.inject.functional.shared import Interception
from sacm.inject.functional.unrolled import UnrolledForward
from sacm.inject.sites import Site, Tap


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
            is_dropout = isinstance(module, nn.modules.dropout._DropoutNd) or module in self.hosts
            if module in self.hosts or (self.everywhere and _may_drop(module)):
                owner = _stand_in(module, hosted=module in self.hosts)(
                    module,
                    name or type(model).__name__,
                    self.shared,
                    own_site=self.hosts.get(module),
                    is_dropout=is_dropout,
                )
                module.__dict__["forward"] = owner
                self.owners.append(owner)

    def install_tap(self, tap: Tap) -> RemovableTap:
        """Show every functional site to the probe until the returned handle is removed."""
        handle = RemovableTap(self.shared)
        # A probe in the middle of a forward runs the model from its beginning.
        self.shared.stack, self.shared.tap = [], tap
        return handle

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
        for owner in self.owners:
            if owner not in stay:
                owner.unwrap()
        self.owners = stay

    def unwrap(self) -> None:
        """Give every module its own forward back."""
        for owner in self.owners:
            owner.unwrap()
        self.owners = []


def _stand_in(module: nn.Module, *, hosted: bool) -> type[OwnerForward]:
    """Return the kind of stand-in for the forward of a module."""
    if not hosted or isinstance(module, nn.modules.dropout._DropoutNd):
        return OwnerForward
    return UnrolledForward if isinstance(module, nn.RNNBase) else RecognisedForward


def _may_drop(module: nn.Module) -> bool:
    """True for modules whose forward may call dropout as a function."""
    if isinstance(module, torch.jit.ScriptModule):  # its forward is no Python code
        return False
    if type(module).forward is nn.Module.forward:  # nn.ModuleList has none of its own
        return False
    builtin = type(module).__module__.startswith("torch.nn.modules")
    known = isinstance(module, nn.modules.dropout._DropoutNd | nn.MultiheadAttention)
    return known or not builtin or any(module.children())


class RemovableTap:
    """Ends what `FunctionalCoverage.install_tap` began."""

    def __init__(self, shared: Interception) -> None:
        self.shared, self.stack, self.tap = shared, shared.stack, shared.tap

    def remove(self) -> None:
        """Stop showing."""
        self.shared.stack, self.shared.tap = self.stack, self.tap
