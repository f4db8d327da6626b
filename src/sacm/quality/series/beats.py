"""Sharp events that come back in a steady beat: heart beats, jobs of a machine, no faults."""

from __future__ import annotations

import numpy as np

from sacm.quality.kinds import BURST, SPIKE
from sacm.quality.series.arrays import Flags, Floats, find_stretches

_JOIN = 12
_FEWEST = 25
_STEADY = 2.2
_USUAL = 0.95
_MARGIN = 1.25


def find_beat(
    flags: list[Flags], excess: list[Floats], ratios: list[Floats]
) -> tuple[float, float]:
    """Sizes up to which spikes and bursts belong to a beat.

    Faults come at any time: the gaps between them differ by far more than a factor of two. If
    the inner half of the gaps does not, the events are natural, and only what exceeds them is
    judged.

    Args:
        flags: Flags `[T]` of each piece.
        excess: Sizes of the residuals over what is expected `[T]`, of each piece.
        ratios: Noise ratios `[T]`, of each piece.

    Returns:
        Smallest cuts of spikes and of bursts; 0 where there is no beat.
    """
    gaps: list[float] = []
    tops: list[tuple[float, float]] = []
    for one, size, ratio in zip(flags, excess, ratios, strict=True):
        starts, stops = find_stretches((one == SPIKE) | (one == BURST), _JOIN)
        # Less what joins two events: random gaps keep their spread then.
        gaps.extend(starts[1:] - stops[:-1] - _JOIN)
        tops.extend(
            (float(size[first:last].max()), float(ratio[first:last].max()))
            for first, last in zip(starts, stops, strict=True)
        )
    if len(gaps) < _FEWEST:
        return 0.0, 0.0
    early, late = np.quantile(gaps, [0.25, 0.75])
    if late > _STEADY * early:
        return 0.0, 0.0
    spike, burst = _MARGIN * np.quantile(tops, _USUAL, axis=0)
    return float(spike), float(burst)
