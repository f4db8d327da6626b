"""How far the rows of every activation move when parts of a batch are disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch
from sacm.inject.probe.infer_layout import find_foreign, measure_rows, share_explained
from sacm.inject.probe.passes import Pass, PassRunner
from sacm.inject.sites import Site

_NOISE = 1e-5  # movements this much smaller than the largest are rounding

CallKey = tuple[Site, int]  # a site, and the position among its calls


@dataclass
class Movements:
    """Movements of the rows of every call in some passes, each with other windows disturbed.

    Args:
        passes: The pass in which each window was disturbed, `[windows]`; -1 for none.
        alone: Every pass disturbed one window alone.
    """

    passes: Tensor
    alone: bool = False
    rows: dict[CallKey, dict[int, list[Tensor]]] = field(default_factory=dict)  # by dimension

    def is_explained(self, key: CallKey, layout: SiteLayout, cross_talk: float) -> bool:
        """Return whether rows moved with their windows, and only with these."""
        found = self._of(key, layout)
        return found is not None and share_explained(*found, cross_talk, alone=self.alone) > 0

    def find_foreign_windows(
        self, key: CallKey, layout: SiteLayout, cross_talk: float
    ) -> set[int] | None:
        """Return the windows whose rows moved with others; None if nothing can be said."""
        found = self._of(key, layout)
        if found is None or not bool(found[0].any()):
            return None
        foreign = find_foreign(*found, cross_talk, alone=self.alone)
        owners = layout.owners(len(self.passes))
        return set(owners[self.passes[owners] >= 0][foreign].tolist())

    def _of(self, key: CallKey, layout: SiteLayout) -> tuple[Tensor, Tensor] | None:
        """Return movements `[passes, rows]` and each row's pass `[rows]`; None if shapes differ."""
        rows = self.rows.get(key, {}).get(layout.dim, [])
        if len(rows) != int(self.passes.max()) + 1:
            return None
        owners = self.passes[layout.owners(len(self.passes))]
        return torch.stack(rows)[:, owners >= 0], owners[owners >= 0]


def disturb_halves(
    runner: PassRunner, batch: ProbeBatch, base: Pass, half: Tensor, strength: float, seed: int
) -> Movements:
    """Disturb one half of the windows, boolean `[count]`, and then the other."""
    return _disturb(runner, batch, base, Movements(half.long()), strength, seed)


def disturb_alone(
    runner: PassRunner,
    batch: ProbeBatch,
    base: Pass,
    windows: Sequence[int],
    strength: float,
    seed: int,
) -> Movements:
    """Disturb some windows one by one."""
    passes = torch.full((batch.count,), -1)
    passes[list(windows)] = torch.arange(len(windows))
    return _disturb(runner, batch, base, Movements(passes, alone=True), strength, seed)


def _disturb(
    runner: PassRunner,
    batch: ProbeBatch,
    base: Pass,
    moved: Movements,
    strength: float,
    seed: int,
) -> Movements:
    """Run the passes and measure how far the rows of every call move."""

    def watch(site: Site, index: int, h: Tensor) -> None:
        calls = base.calls.get(site, [])
        if index < len(calls) and calls[index].shape == h.shape:
            found = moved.rows.setdefault((site, index), {})
            for dim, rows in _measure_all_rows(calls[index], h, batch.count).items():
                found.setdefault(dim, []).append(rows)

    for number in range(int(moved.passes.max()) + 1):
        disturbed = batch.disturb(moved.passes == number, strength, seed + 1)
        state = runner.run(disturbed, seed=seed, watch=watch).random_state
        if not torch.equal(state, base.random_state):
            moved.rows.clear()  # other random numbers, perhaps drawn by another thread: no evidence
            break
    return moved


def _measure_all_rows(base: Tensor, other: Tensor, batch: int) -> dict[int, Tensor]:
    """Return the movement of every row, by dimension whose size the batch divides."""
    change = (torch.nan_to_num(other.detach()) - torch.nan_to_num(base)).abs()
    found = {}
    for dim, size in enumerate(change.shape):
        if size and size % batch == 0 and change.numel():
            rows = measure_rows(change, dim).cpu().double()
            found[dim] = rows.where(rows > _NOISE * rows.max(), 0.0)
    return found
