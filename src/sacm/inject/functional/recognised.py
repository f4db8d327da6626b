"""The stand-in for the forward of a recognised dropout class, such as DropPath."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from sacm.core.no_compile import not_compiled
from sacm.inject.functional.owner import OwnerForward
from sacm.inject.recognise import find_shared_dims


class RecognisedForward(OwnerForward):
    """Drops at the windows' own rates, with the mask shape of the module itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shared_dims: dict[int, tuple[int, ...] | None] = {}  # by number of dimensions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Drop whole rows or feature maps in training; run the module itself otherwise."""
        site = self.own_site
        if not self.module.training or site is None or not site.adaptive:
            return super().__call__(*args, **kwargs)
        self.claim_site(site)
        (h,) = (*args, *kwargs.values())
        if h.dim() not in self.shared_dims:
            self._look_up(h.dim())
        shared = self.shared_dims[h.dim()]
        if shared is None:
            site.leave_ordinary(f"not covered: drops {h.dim()} dimensions in a way of its own")
            return super().__call__(h)
        return self.drop(site, h, self._mask_shape(h, shared))

    @staticmethod
    def _mask_shape(h: Tensor, shared: tuple[int, ...]) -> list[int]:
        """Return the shape of the mask: 1 along the dimensions that share a mask entry."""
        return [1 if dim in shared else size for dim, size in enumerate(h.shape)]

    @not_compiled
    def _look_up(self, dims: int) -> None:
        """Find and remember which dimensions of such an input share a mask entry."""
        self.shared_dims[dims] = find_shared_dims(self.module, dims, self.own_forward)
