"""Random numbers of a run: a function of seed, epoch and rank; a resumed run draws the same."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_epoch(seed: int, epoch: int = 0, rank: int = 0) -> None:
    """Seed torch, NumPy and Python for one epoch (0: building the model, alike on all ranks)."""
    words = np.random.SeedSequence([seed, epoch, rank]).generate_state(3)
    torch.manual_seed(int(words[0]) << 31 | int(words[1]))
    np.random.seed(int(words[1]))
    random.seed(int(words[2]))


def derive_seed(seed: int, member: int) -> int:
    """The seed of one of several networks that a run trains, different for every run and member."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])
