"""What the other channels say about one channel at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints

_MOST = 12
_RIDGE = 0.02


@dataclass(frozen=True)
class Neighbours:
    """Linear prediction of one channel's remainder from those of others.

    Attributes:
        channels: Other channels, strongest relation first.
        weights: Their weights; remainders are in units of each channel's deviation.
    """

    channels: tuple[int, ...]
    weights: tuple[float, ...]

    def predict(self, rests: Floats) -> Floats:
        """Prediction `[T]` from the remainders `[T, C]` of all channels, 0 where unknown."""
        return rests[:, list(self.channels)] @ np.array(self.weights)


def fit_neighbours(rests: Floats, good: Bools) -> list[Neighbours]:
    """Ridge regression of each channel on up to twelve related ones.

    A channel that is not known at a row counts as 0, in the fit as in the prediction, so the
    weights know how often the others fail.

    Args:
        rests: Remainders `[T, C]` in deviations, 0 where not good.
        good: Values that are known `[T, C]`.

    Returns:
        The prediction of each of the C channels.
    """
    moments = rests.T @ rests
    size = np.sqrt(np.maximum(np.diag(moments), 1e-12))
    relation = np.abs(moments / size[:, None] / size[None])
    np.fill_diagonal(relation, -1)
    return [
        _fit_one(rests, good[:, channel], channel, np.argsort(-relation[channel])[:_MOST])
        for channel in range(rests.shape[1])
    ]


def _fit_one(rests: Floats, good: Bools, channel: int, order: Ints) -> Neighbours:
    """Ridge regression of one channel on the given others."""
    others = [int(each) for each in order if each != channel]
    known = rests[good]
    inputs = known[:, others]
    matrix = inputs.T @ inputs + _RIDGE * max(len(known), 1) * np.eye(len(others))
    weights = np.linalg.solve(matrix, inputs.T @ known[:, channel])
    return Neighbours(tuple(others), tuple(float(each) for each in weights))
