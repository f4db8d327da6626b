"""Learn a window guard from training rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.quality.windows.flat_runs import learn_flat_runs
from sacm.quality.windows.folds import Fold, cut_folds
from sacm.quality.windows.gaps import Gaps, draw_lines, fill_window_gaps, learn_gaps
from sacm.quality.windows.limits import learn_limits
from sacm.quality.windows.module import WindowGuard
from sacm.quality.windows.noise import learn_noise
from sacm.quality.windows.offsets import learn_offsets
from sacm.quality.windows.parts import Part
from sacm.quality.windows.segments import learn_segments
from sacm.quality.windows.spikes import learn_spikes
from sacm.quality.windows.training_rows import cut_windows, join_rows, read_training_rows
from sacm.quality.windows.window_model import WindowModel, learn_directions

CHUNK = 512
FREE_LEVEL = 1.0
"""Deviations by which the level of a channel may lie outside of what training windows show.

Gaps are filled with such levels: what a channel stands at before a gap says more than where it, or
its neighbours, used to be. Drifts are looked for without: they are such levels."""


@torch.no_grad()
def fit_window_guard(
    values: object,
    length: int,
    *,
    mean: object = None,
    scale: object = None,
    sensitivity: float = 1.0,
    pieces: Sequence[range] | None = None,
    before: object = None,
    seed: int = 0,
) -> WindowGuard:
    """Learn from training rows what windows look like by nature, and when they do not.

    Args:
        values: training rows [T, C] in the units in which windows will come; NaN is missing.
        length: steps of a window.
        mean: centre of each channel [C]; learnt from the rows if None.
        scale: deviation of each channel [C]; learnt from the rows if None.
        sensitivity: how many healthy values may be flagged by mistake, relative to the default;
            2 flags more, 0.5 less.
        pieces: ranges of rows without a break between them; None takes all rows as one.
        before: the same rows before they were repaired, if they were. Runs at values that only
            they stay at are looked at twice: what was a fault in training may be a level later.
        seed: of the windows that thresholds are checked on.

    Returns:
        A `WindowGuard` in evaluation mode.

    Raises:
        ArgumentError: If an argument has a wrong shape or value, or the rows are fewer than one
            window.
        DataError: If a channel has no value at all.

    Example:
        >>> import torch
        >>> rows = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> guard = fit_window_guard(rows.numpy(), length=96)
        >>> guard(rows[:96].unsqueeze(0)).shape
        torch.Size([1, 96, 2])
    """
    if not sensitivity > 0:
        raise ArgumentError(f"sensitivity must be above 0, got {sensitivity}.")
    rows = read_training_rows(values, length, mean=mean, scale=scale, pieces=pieces)
    runs = learn_flat_runs(
        rows.raw,
        rows.mean,
        rows.scale,
        longest=length // 3,
        sensitivity=sensitivity,
        before=None if before is None else join_rows(before, pieces),
    )
    windows, missing, starts = cut_windows(rows, length)
    bad = missing | torch.cat(
        [runs(w, m) for w, m in zip(windows.split(CHUNK), missing.split(CHUNK), strict=True)]
    )
    windows = _repair(windows, bad, seed)
    directions = learn_directions(windows, seed=seed)
    model = directions.model()
    folds = cut_folds(starts, length)
    parts: dict[str, Part] = {
        "limits": learn_limits(rows.z, rows.codes, sensitivity=sensitivity),
        "runs": runs,
        "gaps": Gaps(trust=torch.zeros(len(rows.mean), dtype=torch.bool)),
        "model": model,
        "filling": directions.model(free_level=FREE_LEVEL),
    }
    if rows.long:
        parts["spikes"] = learn_spikes(windows, sensitivity=sensitivity)
        parts["noise"] = learn_noise(windows, folds, sensitivity=sensitivity)
        parts |= _learn_from_folds(model, windows, folds, sensitivity=sensitivity, seed=seed)
    tensors = torch.from_numpy(rows.mean), torch.from_numpy(rows.scale)
    return WindowGuard(*tensors, length, parts).eval()


def _repair(windows: Tensor, bad: Tensor, seed: int) -> Tensor:
    """Training windows with flagged entries filled by a first model of the best of them."""
    sound = ~(bad.float().mean(1) > 0.5).any(1)
    best = windows[sound] if sound.float().mean() > 0.3 else windows
    first = learn_directions(best, seed=seed).model()
    quiet = torch.zeros(len(windows), windows.shape[2])
    filled = windows.clone()
    for rows in bad.flatten(1).any(1).nonzero().squeeze(1).split(CHUNK):
        lines = draw_lines(windows[rows], bad[rows])
        filled[rows] = fill_window_gaps(first, quiet[rows], lines, bad[rows], bad[rows])
    return filled


def _learn_from_folds(
    model: WindowModel, windows: Tensor, folds: list[Fold], *, sensitivity: float, seed: int
) -> dict[str, Part]:
    """The parts whose limits are checked on windows that the model was not learnt from."""
    learnt = [(learn_directions(windows[fold.inside], seed=seed), fold) for fold in folds]
    crossed = [(directions.model(), fold) for directions, fold in learnt]
    filling = [(directions.model(free_level=FREE_LEVEL), fold) for directions, fold in learnt]
    parts: dict[str, Part] = {
        "gaps": learn_gaps(windows, filling, seed=seed),
        "segments": learn_segments(model, windows, crossed, sensitivity=sensitivity, seed=seed),
    }
    offsets = learn_offsets(windows.mean(1), folds, sensitivity=sensitivity)
    return parts if offsets is None else {**parts, "offsets": offsets}
