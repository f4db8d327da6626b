"""Random 64-bit words, many and cheap, that follow torch's own seed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_LARGE = 1 << 14  # words from which NumPy's generator repays the microseconds of seeding it
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: odd multiples of it scatter well


def random_words(count: int, device: torch.device, *, stream: int = 0) -> Tensor:
    """`[count]` int64 words, every bit random, from torch's default generator of `device`.

    Because torch's generator is the only source, `torch.manual_seed` and activation checkpointing
    hold. `stream` (the rank) makes processes that share a seed draw different words.
    """
    if device.type == "cpu" and count >= _LARGE:
        seed = int(torch.empty((), dtype=torch.int64).random_())
        # SFC64 fills memory about three times as fast as torch's Mersenne Twister.
        words = torch.from_numpy(np.random.SFC64(seed).random_raw(count).view(np.int64))
    else:
        words = torch.empty(count, dtype=torch.int64, device=device).random_(-(2**63), None)
    if stream:
        multiplier = (_GOLDEN * (2 * stream + 1)) % 2**64 | 1
        words.mul_(multiplier - 2**64 if multiplier >= 2**63 else multiplier)
    return words
