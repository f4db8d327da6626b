"""Whole channels whose level disagrees with the levels of the other channels.

Window means of all channels are Gaussian by nature. A faulty set S of channels has an offset
`N(0, TAU²)` each. Every set up to a size gets its evidence, sets are averaged by it, and the level
is corrected only if "no channel is faulty" is less likely than not.
"""

from __future__ import annotations

import math
from itertools import combinations

import torch
from torch import Tensor
from torch.nn import functional as F

from sacm.quality.windows.folds import Fold
from sacm.quality.windows.parts import Part, on_windows

TAU = 0.4
PRIOR = 0.02
RIDGE = 1e-4
MOST_SETS = 1500
SMALLEST = 0.05
"""Offsets below this many deviations are left alone."""
INFLATIONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FALSE_SHARE = 0.02
MOST_BROKEN = 0.05
"""Share of training windows that may look wrong at every inflation: real faults."""


class Offsets(Part):
    """Estimates the offset of whole channels.

    Buffers: level [C], mean of the window means; precision [C, C] of them; members [n, k], channels
    of each faulty set (C where a set is smaller than k); gain [n, k, k] and constant [n] of its log
    evidence; places [n * k, C + 1], ones at the channel of each member.
    """

    level: Tensor
    precision: Tensor
    members: Tensor
    gain: Tensor
    constant: Tensor
    places: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Offsets [B, C] of windows [B, L, C]; exactly 0 where a level is left alone."""
        means = z.mean(1)
        offset, healthy = self.estimate(means)
        wrong = (healthy < 0.5).unsqueeze(1) & (offset.abs() > SMALLEST)
        offset = torch.where(wrong, offset, 0.0)
        return on_windows(wrong.any(1), self._confirm, offset, means)

    def _confirm(self, offset: Tensor, means: Tensor) -> Tensor:
        """Drop corrections that leave the levels at odds: they have blamed the wrong channels."""
        explained = self.estimate(means - offset)[1] >= 0.5
        return torch.where(explained.unsqueeze(1), offset, 0.0)

    def estimate(self, means: Tensor) -> tuple[Tensor, Tensor]:
        """Expected offsets [B, C] and the probability [B] that no channel of [B, C] has one."""
        pull = F.pad((means - self.level) @ self.precision, (0, 1))[:, self.members]  # [B, n, k]
        expected = (self.gain * pull.unsqueeze(-2)).sum(-1)
        evidence = 0.5 * (pull * expected).sum(-1) + self.constant
        shares = F.pad(evidence, (1, 0)).softmax(1)  # the empty set comes first
        weighted = (shares[:, 1:].unsqueeze(-1) * expected).flatten(1)
        return (weighted @ self.places)[:, :-1], shares[:, 0]


def learn_offsets(means: Tensor, folds: list[Fold], *, sensitivity: float) -> Offsets | None:
    """Learn from the window means [N, C] of training windows; None if levels follow no law.

    The covariance of levels is inflated until windows that it was not learnt from look healthy,
    save for those that no inflation explains.
    """
    wrong = [_wrong_share(means, folds, inflation) for inflation in INFLATIONS]
    if not folds or wrong[-1] > MOST_BROKEN:
        return None
    allowed = wrong[-1] + FALSE_SHARE * sensitivity
    chosen = next(c for c, share in zip(INFLATIONS, wrong, strict=True) if share <= allowed)
    return make_offsets(means, chosen)


def _wrong_share(means: Tensor, folds: list[Fold], inflation: float) -> float:
    """Share of held-out window means that look faulty."""
    wrong = [
        make_offsets(means[fold.inside], inflation).estimate(means[fold.held])[1] < 0.5
        for fold in folds
    ]
    return float(torch.cat(wrong).float().mean()) if wrong else 0.0


def make_offsets(means: Tensor, inflation: float) -> Offsets:
    """Precompute the evidence of every faulty set from window means [N, C]."""
    channels = means.shape[1]
    exact = means.double()
    eye = torch.eye(channels, dtype=torch.float64)
    precision = torch.linalg.inv(torch.cov(exact.T).view_as(eye) + RIDGE * eye) / inflation
    sets = faulty_sets(channels)
    size = len(sets[-1])
    members = torch.tensor([[*group, *[channels] * (size - len(group))] for group in sets])
    present = members < channels
    both = present[:, :, None] & present[:, None, :]
    index = members.clamp_max(channels - 1)
    inner = torch.where(both, precision[index[:, :, None], index[:, None, :]], 0.0)
    inner = inner + torch.eye(size, dtype=torch.float64) / TAU**2
    odds = math.log(PRIOR / (1 - PRIOR))
    # Absent members contribute 1 / TAU² to the determinant, which `size * log(TAU)` takes back.
    constant = present.sum(1) * odds - 0.5 * torch.logdet(inner) - size * math.log(TAU)
    return Offsets(
        level=exact.mean(0).float(),
        precision=precision.float(),
        members=members,
        gain=torch.where(both, torch.linalg.inv(inner), 0.0).float(),
        constant=constant.float(),
        places=F.one_hot(members, channels + 1).flatten(0, 1).float(),
    )


def faulty_sets(channels: int) -> list[tuple[int, ...]]:
    """All sets of up to half of the channels, smallest first; only small ones if they are many."""
    sets: list[tuple[int, ...]] = []
    for size in range(1, math.ceil(channels / 2) + 1):
        if size > 1 and len(sets) + math.comb(channels, size) > MOST_SETS:
            break
        sets.extend(combinations(range(channels), size))
    return sets
