"""Training windows of a run with their scores and dropout rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.data.batches import WindowBatches
from sacm.files import read_weights
from sacm.inject.sites import MODULATOR
from sacm.strategies.registry import parts_of
from sacm.strategies.sacm import SACM
from sacm.training.run import Run

_WINDOWS = 1024  # training windows whose rates are drawn


@dataclass(frozen=True)
class RateSample:
    """Training windows of one run `[N, L, C]` with their scores and rates `[N]`."""

    learned: bool  # whether scorer and mapper are the run's own
    windows: np.ndarray
    scores: np.ndarray
    rates: np.ndarray


def rate_sample(run: Run, data: Any) -> RateSample:
    """Score training windows in the order of training, by the run's own scorer if it has one."""
    settings, strategy = run.settings, run.strategy
    windows = run.task.windows(settings, data)
    scorer, mapper, learned = _modulation(run, data.channels)
    size = min(settings.batch_size, len(windows.train))
    batches = WindowBatches(windows.train, size, shuffle=True, drop_last=True, seed=settings.seed)
    seen, scores, rates = [], [], []
    with torch.no_grad():
        for batch in batches:
            seen.append(strategy.inputs(batch.x))
            scores.append(scorer(seen[-1]).scores)
            rates.append(mapper(scores[-1]))
            if len(scores) * size >= _WINDOWS:
                break
    drawn, found, mapped = (torch.cat(parts).numpy() for parts in (seen, scores, rates))
    return RateSample(learned, drawn, found, mapped)


def _modulation(run: Run, channels: int) -> tuple[SpectralScorer, RateMapper, bool]:
    """Scorer and mapper as trained; fresh ones where the run has none, or registered ones."""
    method = next((part for part in parts_of(run.strategy) if isinstance(part, SACM)), SACM())
    scorer, mapper = SpectralScorer(channels, method.config()), RateMapper(method.config())
    learned = False
    if (method.scorer, method.mapper) != (SACM().scorer, SACM().mapper):
        return scorer, mapper, learned
    weights = read_weights(run.folder / "best.safetensors")
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        prefix = f"{MODULATOR}.{name}."
        state = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        if state and state.keys() == module.state_dict().keys():
            module.load_state_dict(state)
            learned = True
    return scorer, mapper, learned
