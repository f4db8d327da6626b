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
    settings, windows = run.settings, run.task.windows(run.settings, data)
    scorer, mapper, learned = _modulation(run, data.channels)
    size = min(settings.batch_size, len(windows.train))
    batches = WindowBatches(windows.train, size, shuffle=True, drop_last=True, seed=settings.seed)
    seen: list[torch.Tensor] = []
    for batch in batches:
        seen.append(run.strategy.inputs(batch.x))
        if len(seen) * size >= _WINDOWS:
            break
    with torch.no_grad():
        scores = [scorer(x).scores for x in seen]
        rates = [mapper(each) for each in scores]  # a batch by itself, as in training
    drawn, found, mapped = (torch.cat(parts).numpy() for parts in (seen, scores, rates))
    return RateSample(learned, drawn, found, mapped)


def _modulation(run: Run, channels: int) -> tuple[SpectralScorer, RateMapper, bool]:
    """Scorer and mapper as trained; fresh ones where the run has none, or registered ones."""
    method = next((part for part in parts_of(run.strategy) if isinstance(part, SACM)), SACM())
    scorer, mapper = SpectralScorer(channels, method.config()), RateMapper(method.config())
    usual = (method.scorer, method.mapper) == (SACM().scorer, SACM().mapper)
    weights = read_weights(run.folder / "best.safetensors") if usual else {}
    learned = False
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        prefix = f"{MODULATOR}.{name}."
        state = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        if state and state.keys() == module.state_dict().keys():
            module.load_state_dict(state)
            learned = True
    return scorer, mapper, learned
