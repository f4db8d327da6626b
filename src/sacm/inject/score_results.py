"""What a scorer gives: scores of windows, and rates of channels where it scores channels too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from sacm.errors import ArgumentError

Map = Callable[[Tensor, Tensor | None], Tensor]  # scores and reliable windows to rates


def read_scores(result: Any, window: Tensor) -> Tensor:
    """Return the scores `[B]` of windows `[B, L, C]`, whatever else a scorer gives.

    Raises:
        ArgumentError: They are of another kind or shape.
    """
    scores = getattr(result, "scores", result)
    if not isinstance(scores, Tensor) or scores.shape != window.shape[:1]:
        found = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ArgumentError(
            f"the scorer must give one score per window, [{window.shape[0]}], but gave {found}."
        )
    return scores


def map_channels(result: Any, reliable: Tensor | None, map_scores: Map) -> tuple[Tensor, Tensor]:
    """Return the rates of windows `[B]`, means of the rates of their channels `[B, C]`, and these.

    Raises:
        ArgumentError: The scorer does not score channels.
    """
    scores = getattr(result, "channel_scores", None)
    if scores is None:
        raise ArgumentError("per_channel needs a scorer that gives channel_scores [B, C].")
    usable = None if reliable is None else reliable.repeat_interleave(scores.shape[1])
    rates = map_scores(scores.flatten(), usable).view(scores.shape)
    return rates.mean(dim=1), rates
