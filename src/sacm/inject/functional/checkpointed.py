"""Follow checkpointed functions into the backward pass.

`torch.utils.checkpoint.checkpoint(function, …, use_reentrant=False)` runs the function again in the
backward pass, when the forward of its owner is long over. Torch keeps the function in a frame; here
the frame is found during the forward, and its re-run is led through the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def checkpoint_frame() -> Any:
    """Return torch's record of the innermost checkpointed part that is running, or None."""
    if torch.compiler.is_compiling():
        return None
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    cells = getattr(hooks[0], "__closure__", None) if hooks else None
    held = [cell.cell_contents for cell in cells or ()]
    return next((each for each in held if hasattr(each, "recompute_fn")), None)


def follow_rerun(frame: Any, run: Callable[[Callable[[], Any]], Any]) -> None:
    """Lead the re-run of a checkpointed part through `run`, once."""
    if not isinstance(frame.recompute_fn, _Rerun):
        frame.recompute_fn = _Rerun(frame.recompute_fn, run)


class _Rerun:
    """Calls torch's own function within `run`."""

    def __init__(self, function: Any, run: Callable[[Callable[[], Any]], Any]) -> None:
        self.function, self.run = function, run

    def __call__(self, *args: Any) -> Any:
        return self.run(lambda: self.function(*args))
