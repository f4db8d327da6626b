"""Fill flagged entries of windows, and take noise out of rough channels."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.quality.windows.folds import Fold, draw_windows
from sacm.quality.windows.neighbours import bridge, find_neighbours, interpolate
from sacm.quality.windows.noise import WindowNoise
from sacm.quality.windows.parts import Part, any_in_window, on_windows
from sacm.quality.windows.window_model import ETA, WindowModel

CHECK_WINDOWS = 400
CHECK_LENGTHS = (2, 6, 12, 24, 48)
MOST_BY_LINES = 0.5
"""With more of a channel flagged, lines say nothing and the model fills, trusted or not."""


class Gaps(Part):
    """Fills flagged entries from straight lines or from the window model.

    Buffers: trust, bool [C], channels in which the window model fills better than straight lines.
    """

    trust: Tensor

    def draw_lines(self, z: Tensor, bad: Tensor) -> Tensor:
        """Flagged entries on straight lines between good ones; [B, L, C]."""
        return on_windows(any_in_window(bad), draw_lines, z, bad)

    def forward(
        self,
        model: WindowModel,
        noise: WindowNoise | None,
        lines: Tensor,
        bad: Tensor,
        alone: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Fill long gaps from the model and take noise out of rough channels.

        Args:
            model: what clean windows look like.
            noise: the test for rough channels, or None.
            lines: windows [B, L, C] with flagged entries on straight lines.
            bad: flagged entries, bool [B, L, C].
            alone: flagged single steps, for which the straight line is good enough.

        Returns:
            Repaired windows [B, L, C], and which channels were rough, bool [B, C].
        """
        rough = torch.zeros_like(bad[:, 0]) if noise is None else noise.suspect(lines)
        dead = bad.float().mean(1, keepdim=True) > MOST_BY_LINES
        refill = bad & ~alone & (self.trust | dead)
        hit = any_in_window(refill) | rough.any(1)

        def fill(lines: Tensor, bad: Tensor, refill: Tensor) -> Tensor:
            variance = torch.zeros_like(lines[:, 0]) if noise is None else noise.variance(lines)
            return fill_window_gaps(model, variance, lines, bad, refill)

        return on_windows(hit, fill, lines, bad, refill), rough


def draw_lines(z: Tensor, bad: Tensor) -> Tensor:
    """Straight lines through the flagged entries of every window."""
    return torch.where(bad, interpolate(find_neighbours(z, ~bad)), z)


def fill_window_gaps(
    model: WindowModel, variance: Tensor, lines: Tensor, bad: Tensor, refill: Tensor
) -> Tensor:
    """Fit the good entries, carry their residuals into the gaps, shrink noise towards the fit."""
    noise = variance.unsqueeze(1)
    weight = torch.where(bad, 0.0, 1 / (1 + ETA * noise / model.spread))
    fit = model.fit(lines, weight)
    quiet = lines + noise / (noise + model.spread) * (fit - lines)
    quiet = torch.where(noise > 0, quiet, lines)
    near = find_neighbours(torch.where(bad, 0.0, quiet - fit), ~bad)
    return torch.where(refill, fit + bridge(near, model.carry), quiet)


def learn_gaps(windows: Tensor, folds: list[tuple[WindowModel, Fold]], *, seed: int) -> Gaps:
    """Compare both ways of filling on gaps cut into held-out training windows [N, L, C]."""
    _, length, channels = windows.shape
    generator = torch.Generator().manual_seed(seed)
    errors = torch.zeros(2, channels)
    for model, fold in folds:
        x = draw_windows(windows[fold.held], CHECK_WINDOWS, generator)
        for steps in CHECK_LENGTHS:
            if steps > length // 2:
                continue
            bad = _cut_gaps(x, steps, generator)
            lines = draw_lines(x, bad)
            filled = fill_window_gaps(model, torch.zeros(len(x), channels), lines, bad, bad)
            for row, guess in enumerate((lines, filled)):
                errors[row] += torch.where(bad, (guess - x).square(), 0.0).sum((0, 1)) / steps
    return Gaps(trust=errors[1] < errors[0])


def _cut_gaps(x: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """One gap a window, in all channels of every second window and in some of the others."""
    count, length, channels = x.shape
    first = torch.randint(1, length - steps + 1, (count, 1, 1), generator=generator)
    position = torch.arange(length).view(1, length, 1)
    chosen = torch.rand(count, 1, channels, generator=generator) < 0.4
    chosen[::2] = True
    return (position >= first) & (position < first + steps) & chosen
