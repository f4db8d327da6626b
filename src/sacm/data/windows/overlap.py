"""One value for each time step from windows that overlap."""

from __future__ import annotations

import torch
from torch import Tensor


class OverlapMean:
    """The mean over all windows that cover a step, collected batch by batch in float64.

    >>> mean = OverlapMean(rows=3)
    >>> mean.update(torch.tensor([[1.0, 2.0], [4.0, 5.0]]), torch.tensor([0, 1]))
    >>> mean.result().tolist()
    [1.0, 3.0, 5.0]
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.total: Tensor | None = None
        self.count: Tensor | None = None

    def update(self, scores: Tensor, positions: Tensor) -> None:
        """Add `scores` `[B, L, ...]` of windows whose first rows are `positions` `[B]`."""
        scores = scores.detach().cpu().double()  # not every accelerator has float64
        if self.total is None or self.count is None:
            self.total = torch.zeros(self.rows, *scores.shape[2:], dtype=torch.float64)
            self.count = torch.zeros(self.rows, dtype=torch.float64)
        steps = torch.arange(scores.shape[1])
        rows = (positions.cpu()[:, None] + steps).flatten()  # [B * L]
        self.total.index_add_(0, rows, scores.flatten(0, 1))
        self.count.index_add_(0, rows, torch.ones_like(rows, dtype=torch.float64))

    def covered(self) -> Tensor:
        """Which steps `[rows]` have been seen in a window."""
        if self.count is None:
            return torch.zeros(self.rows, dtype=torch.bool)
        return self.count.cpu() > 0

    def result(self) -> Tensor:
        """Means `[rows, ...]`; NaN at steps that no window covered."""
        if self.total is None or self.count is None:
            return torch.full((self.rows,), torch.nan, dtype=torch.float64)
        count = self.count.view(-1, *[1] * (self.total.dim() - 1))
        return self.total / count
