"""What all owners of one model share while their functional dropout is intercepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sacm.inject.discover import matches
from sacm.inject.layout import SiteLayout
from sacm.inject.sites import SKIPPED, Site, Tap
from sacm.inject.state import ModulationState


@dataclass
class Interception:
    """The owners that are running, and the wishes of the user about functional sites.

    `stack` holds the running owners, innermost last. `tap` is set during a probe. `interceptor` is
    the mode that is in charge; an outer one, around a probe in mid-forward, keeps still.
    """

    state: ModulationState
    skip: Sequence[str] = ()
    site_layouts: Mapping[str, SiteLayout] = field(default_factory=dict)
    stack: list[Any] = field(default_factory=list)
    tap: Tap | None = None
    interceptor: Any = None

    def make_site(self, owner: str, kind: str, ordinal: int) -> Site:
        """Make a functional site, named after its owner: `encoder.attention:dropout`."""
        name = f"{owner}:{kind}" + (f"[{ordinal}]" if ordinal else "")
        site = Site(name, f"functional {kind}", state=self.state)
        if any(matches(name, glob) for glob in self.skip):
            site.leave_ordinary(SKIPPED)
        for glob, layout in self.site_layouts.items():
            if matches(name, glob):
                site.stated = layout
        return site
