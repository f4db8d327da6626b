"""Ways to fill a gap: a line, or a base with a bridge, alone or with other channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, fill_forward, fill_linear
from sacm.quality.series.bridge import Persistence, bridge_gaps, fit_persistence
from sacm.quality.series.neighbours import Neighbours, fit_neighbours
from sacm.quality.series.season_base import SeasonBase, fit_season_base

SeriesPart = tuple[Floats, Bools, int]
"""A piece: values `[T, C]`, which of them are known, and the number of its first row."""


@dataclass(frozen=True)
class BaseMethod:
    """One kind of base for all channels, and what is left of each channel beside it.

    Attributes:
        bases: Base of each channel.
        deviations: Deviation of each channel from its base.
        alone: Persistence of each channel's remainder.
        neighbours: What the other channels say of each remainder.
        beside: Persistence of what they leave over.
    """

    bases: tuple[SeasonBase, ...]
    deviations: tuple[float, ...]
    alone: tuple[Persistence, ...]
    neighbours: tuple[Neighbours, ...]
    beside: tuple[Persistence, ...]

    def fill(
        self, part: SeriesPart, alone: set[int], together: set[int], *, causal: bool = False
    ) -> dict[tuple[int, bool], Floats]:
        """Fill the gaps of some channels of one piece.

        Args:
            part: The piece.
            alone: Channels to fill by themselves.
            together: Channels to fill with the help of others.
            causal: Use earlier rows alone (and the other channels at the same row).

        Returns:
            The filled channel `[T]` by (channel, with others).
        """
        values, good, start = part
        needed = alone | together
        for channel in together:
            needed = needed | set(self.neighbours[channel].channels)
        # Channels are worked on one by one: each lies in one piece of memory.
        base, rests = np.zeros(values.shape, order="F"), np.zeros(values.shape, order="F")
        for channel in needed:
            ok = good[:, channel]
            base[:, channel] = self.bases[channel].predict(
                values[:, channel], ok, start, causal=causal
            )
            rests[:, channel] = np.where(ok, values[:, channel] - base[:, channel], 0.0)
        filled = {}
        for channel in alone:
            rest = bridge_gaps(
                rests[:, channel], good[:, channel], self.alone[channel], causal=causal
            )
            filled[channel, False] = base[:, channel] + rest
        if together:
            scaled = rests / np.array(self.deviations)
        for channel in together:
            said = self.neighbours[channel].predict(scaled) * self.deviations[channel]
            left = np.where(good[:, channel], rests[:, channel] - said, 0.0)
            rest = bridge_gaps(left, good[:, channel], self.beside[channel], causal=causal)
            filled[channel, True] = base[:, channel] + said + rest
        return filled


def fit_base_method(parts: list[SeriesPart], period: int) -> BaseMethod:
    """Learn one kind of base and all that goes with it.

    Args:
        parts: Pieces to learn from.
        period: Rows of one cycle; 0 for the channels' medians as base.
    """
    channels = parts[0][0].shape[1]
    bases = tuple(
        fit_season_base(
            [values[:, c] for values, _, _ in parts],
            [good[:, c] for _, good, _ in parts],
            [start for _, _, start in parts],
            period,
        )
        for c in range(channels)
    )
    good = [ok for _, ok, _ in parts]
    rests = [
        np.stack(
            [
                np.where(ok[:, c], values[:, c] - bases[c].predict(values[:, c], ok[:, c], s), 0.0)
                for c in range(channels)
            ],
            axis=1,
        )
        for values, ok, s in parts
    ]
    pooled, known = np.concatenate(rests), np.concatenate(good)
    count = np.maximum(known.sum(axis=0), 1)
    deviations = np.sqrt((pooled**2).sum(axis=0) / count)
    deviations[deviations == 0] = 1.0
    neighbours = fit_neighbours(pooled / deviations, known)
    left = [
        np.stack(
            [
                rest[:, c] - neighbours[c].predict(rest / deviations) * deviations[c]
                for c in range(channels)
            ],
            axis=1,
        )
        for rest in rests
    ]
    return BaseMethod(
        bases,
        tuple(float(each) for each in deviations),
        tuple(_persistence(rests, good, c) for c in range(channels)),
        tuple(neighbours),
        tuple(_persistence(left, good, c) for c in range(channels)),
    )


def fill_line(values: Floats, good: Bools, centre: float, *, causal: bool = False) -> Floats:
    """Straight lines through the gaps of one channel; with `causal` the last known value."""
    if not good.any():
        return np.full(len(values), centre)
    if not causal:
        return fill_linear(values, good)
    begun = np.cumsum(good) > 0
    return np.where(begun, fill_forward(values, good), centre)


def _persistence(rests: list[Floats], good: list[Bools], channel: int) -> Persistence:
    """Persistence of one channel's remainder over all pieces."""
    return fit_persistence([one[:, channel] for one in rests], [one[:, channel] for one in good])
