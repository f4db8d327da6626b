"""Map the scores of a batch to rates, with the library's mapper or a user's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.core.mapper import RateMapper
from sacm.core.scorer import without_autocast
from sacm.errors import ArgumentError


def map_scores(mapper: nn.Module, scores: Tensor, reliable: Tensor | None, p_max: float) -> Tensor:
    """Map scores `[B]` to rates `[B]`; what a user's own mapper gives is checked.

    Raises:
        ArgumentError: A user's own mapper gives another shape, or rates outside [0, 1).
    """
    with without_autocast(scores.device.type):
        if isinstance(mapper, RateMapper):
            rates: Tensor = mapper(scores, reliable)
            return rates
        rates = mapper(scores)
    if not isinstance(rates, Tensor) or rates.shape != scores.shape:
        found = list(rates.shape) if isinstance(rates, Tensor) else type(rates).__name__
        raise ArgumentError(
            f"the mapper must give one rate per window, {list(scores.shape)}, but gave {found}."
        )
    # Elsewhere this would wait for the device in every step.
    if rates.device.type == "cpu" and not torch.compiler.is_compiling():
        outside = (rates < 0) | (rates >= 1)
        if bool(outside.any()):
            value = rates[outside][0].item()
            raise ArgumentError(f"rates of the mapper must lie in [0, 1), got {value:g}.")
    return rates if reliable is None else torch.where(reliable, rates, p_max)
