"""Stretches of a channel that do not fit the rest of their window.

Blocks of `BLOCK` steps whose distance from the fit is rare in training lose weight, the window is
fitted again, and blocks that still do not fit are replaced by what the others expect.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sacm.quality.windows.folds import Fold
from sacm.quality.windows.parts import Part, any_in_window, on_windows
from sacm.quality.windows.window_model import WindowModel

BLOCK = 8
ROUNDS = 2
FALSE_SHARE = 5e-4
FALSE_SHARE_UNSEEN = 1e-2
DROP_BELOW = 0.5
DOUBTED_BELOW = 0.1
MOST_DOUBTED = 0.6
FULL_AT = 0.5
"""A block is replaced in full when its distance passes the limit by this share of it."""


class Segments(Part):
    """Replaces blocks of windows that do not fit.

    Buffers: seen [C], distance of a block from the fit that training windows pass seldom; unseen
    [C], the same for blocks that the fit has not seen; average [n, L], takes means over blocks.
    """

    seen: Tensor
    unseen: Tensor
    average: Tensor

    def forward(self, model: WindowModel, z: Tensor) -> Tensor:
        """Windows [B, L, C] with misfit blocks replaced; everything else is left as it is."""
        misfit = block_distance(z, model.fit(z), self.average) / self.seen
        hit = any_in_window(misfit > 1)
        return on_windows(hit, lambda x, m: self._replace(model, x, m), z, misfit)

    def _replace(self, model: WindowModel, z: Tensor, misfit: Tensor) -> Tensor:
        """Refit without the blocks in doubt, then replace those that still do not fit."""
        belongs = self.average.gt(0).to(z.dtype).T  # [L, n]
        for turn in range(ROUNDS):
            weight = torch.where(misfit > 1, misfit.clamp_min(1.0) ** -2, 1.0)
            if turn == ROUNDS - 1:
                weight = torch.where(weight < DROP_BELOW, 0.02 * weight, weight)
            fit = model.fit(z, belongs @ weight)
            limit = torch.where(weight < DOUBTED_BELOW, self.unseen, self.seen)
            misfit = block_distance(z, fit, self.average) / limit
        doubted = weight < DOUBTED_BELOW
        share = torch.where(doubted, ((misfit - 1) / FULL_AT).clamp(0, 1), 0.0)
        # With most blocks in doubt there is no ground to stand on.
        grounded = doubted.flatten(1).float().mean(1) <= MOST_DOUBTED
        share = belongs @ torch.where(grounded[:, None, None], share, 0.0)
        return torch.where(share > 0, z + share * (fit - z), z)


def block_distance(z: Tensor, fit: Tensor, average: Tensor) -> Tensor:
    """Root mean square of `z - fit` over blocks, [B, L, C] to [B, n, C]."""
    return (average @ (z - fit).square()).sqrt()


def block_average(length: int) -> Tensor:
    """Matrix [n, L] that takes means over blocks; the last block may be shorter."""
    block = torch.arange(length) // BLOCK
    belongs = (block.unsqueeze(0) == torch.arange(int(block[-1]) + 1).unsqueeze(1)).float()
    return belongs / belongs.sum(1, keepdim=True)


def learn_segments(
    model: WindowModel,
    windows: Tensor,
    folds: list[tuple[WindowModel, Fold]],
    *,
    sensitivity: float,
    seed: int,
) -> Segments:
    """Learn limits from training windows [N, L, C]; those of held-out windows count if larger."""
    generator = torch.Generator().manual_seed(seed)
    average = block_average(windows.shape[1])
    own = _limits(model, _some(windows, 1500, generator), average, sensitivity, generator)
    crossed = [
        _limits(learnt, _some(windows[fold.held], 600, generator), average, sensitivity, generator)
        for learnt, fold in folds
    ]
    mean_crossed = np.mean(crossed, axis=0) if crossed else np.asarray(own)
    seen, unseen = torch.from_numpy(np.maximum(own, mean_crossed).astype(np.float32))
    return Segments(seen=seen, unseen=unseen, average=average)


def _some(windows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """At most `count` windows, drawn without replacement."""
    return windows[torch.randperm(len(windows), generator=generator)[:count]]


def _limits(
    model: WindowModel,
    windows: Tensor,
    average: Tensor,
    sensitivity: float,
    generator: torch.Generator,
) -> np.ndarray:
    """Limits for blocks that the fit has seen and has not seen, [2, C]."""
    count, _, channels = windows.shape
    blocks = len(average)
    seen = block_distance(windows, model.fit(windows), average).flatten(0, 1).numpy()
    left_out: list[list[np.ndarray]] = [[] for _ in range(channels)]
    belongs = average.gt(0).float().T
    for _ in range(4):  # three blocks in a row are left out of about a third of the channels
        first = torch.randint(0, max(1, blocks - 2), (count, 1, 1), generator=generator)
        position = torch.arange(blocks).view(1, blocks, 1)
        out = (position >= first) & (position < first + 3)
        out = out & (torch.rand(count, 1, channels, generator=generator) < 0.3)
        distance = block_distance(windows, model.fit(windows, belongs @ (~out).float()), average)
        for c in range(channels):
            left_out[c].append(distance[:, :, c][out[:, :, c]].numpy())
    share, share_unseen = (min(0.5, s * sensitivity) for s in (FALSE_SHARE, FALSE_SHARE_UNSEEN))
    unseen = [np.quantile(np.concatenate(d), 1 - share_unseen) for d in left_out]
    floor = np.sqrt(model.spread.numpy())
    return np.maximum(np.stack([np.quantile(seen, 1 - share, axis=0), unseen]), floor)
