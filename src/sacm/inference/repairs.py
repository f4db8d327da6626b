"""What a guard repaired in the windows that a prediction starts from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from sacm.inference.trained import Array, TrainedNetwork
from sacm.quality.kinds import KINDS


class Repairs(NamedTuple):
    """Share of each window's values that were repaired `[S]`, and a sentence a channel."""

    shares: Array
    notes: tuple[str, ...]


def find_repairs(
    trained: TrainedNetwork, windows: Tensor, series: list[str], columns: tuple[str, ...]
) -> Repairs | None:
    """Count what is repaired in scaled windows `[S, L, C]`, the last rows of each series.

    Returns:
        The shares and what to tell the user; None if the network was trained without a guard.
    """
    found = trained.strategy.count_repairs(windows)
    if found is None:
        return None
    flags: Array = found.cpu().numpy()
    notes = []
    for place, name in enumerate(series):
        for channel, column in enumerate(columns):
            own = flags[place, :, channel]
            count = int((own > 0).sum())
            if count:
                kinds, numbers = np.unique(own[own > 0], return_counts=True)
                kind = KINDS[int(kinds[numbers.argmax()])]
                whose = f" of series {name!r}" if len(series) > 1 else ""
                notes.append(
                    f"{count} of the last {len(own)} values of {column!r}{whose} look broken "
                    f"(mostly {kind}) and were repaired; --no-repair takes them as they are."
                )
    return Repairs((flags > 0).mean(axis=(1, 2)), tuple(notes))
