"""Verify layouts on a whole training batch, in training mode.

The probe sees few windows and, for modules, evaluation mode. A model may sort its batch by length,
shuffle it, mix windows up in training or route them by their values. So the layouts are checked on
the first real batches: one pass with the batch as it is, and one for each of some windows that are
disturbed alone. A row must move with its own window, and not with another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout, Unresolved
from sacm.inject.probe.batch import ProbeBatch, take_whole_batch
from sacm.inject.probe.infer import (
    FAINT,
    find_foreign,
    list_candidates,
    measure_rows,
    share_explained,
)
from sacm.inject.probe.run import Call, Pass, PassRunner, restored_afterwards, tensors_equal
from sacm.inject.sites import Site
from sacm.inject.window import WindowArgument

# Strength of a disturbance, and the cross-talk that is forgiven. A choice made for the whole batch
# may flip under a strong disturbance. A layout is refused only if every attempt that shows anything
# contradicts it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1e-4, FAINT), (1.0, FAINT))
_CHECKED = 8  # windows disturbed to check layouts
_LEARNED = 32  # windows disturbed to find a layout that few windows did not show
_REPETITIONS = 3  # undisturbed passes that must agree before a layout is refused
_NOISE = 1e-5  # movements this much smaller than the largest are rounding

CallKey = tuple[Site, int]  # a site, and the position among its calls


@dataclass
class Movements:
    """Movements of the rows of every call, in passes that each disturbed one window.

    Args:
        passes: The pass in which each window was disturbed, `[windows]`; -1 for none.
    """

    passes: Tensor
    rows: dict[CallKey, dict[int, list[Tensor]]] = field(default_factory=dict)  # by dimension

    def of(self, key: CallKey, layout: SiteLayout) -> tuple[Tensor, Tensor] | None:
        """Return movements `[passes, rows]` and each row's pass `[rows]`; None if shapes differ."""
        rows = self.rows.get(key, {}).get(layout.dim, [])
        if len(rows) != int(self.passes.max()) + 1:
            return None
        owners = self.passes[layout.owners(len(self.passes))]
        return torch.stack(rows)[:, owners >= 0], owners[owners >= 0]


@dataclass
class LayoutCheck:
    """Checks layouts on all windows of a call.

    Args:
        runner: Runs the model with a tap at every site.
        window: Finds the window among the arguments.
        trusted: Names of sites whose layout the model itself states.
    """

    runner: PassRunner
    window: WindowArgument
    trusted: Collection[str] = ()

    def find_problems(self, call: Call, seed: int) -> list[Unresolved]:
        """Return the sites whose layout does not hold for this batch; learn what is unknown."""
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            if batch.count < 2:
                return []
            base = self.runner.run(batch.call, seed=seed)
            for site in base.calls:
                site.reached = True
            problems = _find_misfits(base, batch.count)
            self._learn(batch, base, {site for site in base.calls if site.stated is None})
            suspects = self._known_layouts(base, batch.count)
            contradicted: set[CallKey] = set()
            for strength, cross_talk in _ATTEMPTS:
                if not suspects:
                    return problems
                moved = self._disturb(batch, base, _CHECKED, strength, seed)
                for key, layout in list(suspects.items()):
                    rows = moved.of(key, layout)
                    if rows is None or not bool(rows[0].any()):
                        continue
                    if bool(find_foreign(*rows, cross_talk).any()):
                        contradicted.add(key)
                    else:
                        del suspects[key]
            for _ in range(_REPETITIONS if contradicted else 0):
                contradicted &= self._find_steady(batch, base, seed)
        return problems + [
            site.unresolved(base.calls[site][index].shape, _describe(layout, batch.count))
            for (site, index), layout in suspects.items()
            if (site, index) in contradicted
        ]

    def learn(self, call: Call, wanted: Collection[Site]) -> set[Site]:
        """Find layouts at the size of this batch, for sites that few windows did not show.

        Returns:
            The sites all of whose calls have a layout now.
        """
        if not wanted:
            return set()
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            base = self.runner.run(batch.call)
            self._learn(batch, base, wanted)
        unknown = {
            site for site, _, h in base.indexed if not site.known_layouts(h.shape, batch.count)
        }
        return set(wanted) - unknown

    def _learn(self, batch: ProbeBatch, base: Pass, wanted: Collection[Site]) -> None:
        """Give every unknown call the first layout that explains what moved."""
        for strength, cross_talk in _ATTEMPTS:
            unknown = [
                (site, index, h)
                for site, index, h in base.indexed
                if site.adaptive
                and site in wanted
                and h.numel()
                and not site.known_layouts(h.shape, batch.count)
            ]
            if not unknown:
                return
            moved = self._disturb(batch, base, _LEARNED, strength, 0)
            for site, index, h in unknown:
                for layout in list_candidates(h.shape, batch.count):
                    rows = moved.of((site, index), layout)
                    if rows is not None and share_explained(*rows, cross_talk) > 0:
                        site.learn(h.shape, layout)
                        break

    def _known_layouts(self, base: Pass, batch: int) -> dict[CallKey, SiteLayout]:
        """Return the layouts to check: one for every call that has exactly one."""
        layouts = {}
        for site, index, h in base.indexed:
            if site.adaptive and site.stated is None and site.name not in self.trusted:
                known = site.known_layouts(h.shape, batch)
                if len(known) == 1:
                    layouts[site, index] = known.pop()
        return layouts

    def _find_steady(self, batch: ProbeBatch, base: Pass, seed: int) -> set[CallKey]:
        """Return the calls that stay the same when nothing is disturbed; others prove nothing."""
        again = {(site, i): h for site, i, h in self.runner.run(batch.call, seed=seed).indexed}
        return {
            (site, i)
            for site, i, h in base.indexed
            if (site, i) in again and tensors_equal([h], [again[site, i]])
        }

    def _disturb(
        self, batch: ProbeBatch, base: Pass, most: int, strength: float, seed: int
    ) -> Movements:
        """Disturb up to `most` windows one by one, and measure how far the rows of calls move."""
        order = torch.randperm(batch.count, generator=torch.Generator().manual_seed(seed))
        windows = order[:most]
        passes = torch.full((batch.count,), -1)
        passes[windows] = torch.arange(len(windows))
        moved = Movements(passes)
        for window in windows.tolist():
            disturbed = batch.disturb(torch.arange(batch.count) == window, strength, seed + 1)
            state = self.runner.run(
                disturbed, seed=seed, watch=_measuring(moved, base, batch.count)
            ).random_state
            if not torch.equal(state, base.random_state):
                moved.rows.clear()  # other random numbers, perhaps of another thread: no evidence
                break
        return moved


def _measuring(moved: Movements, base: Pass, batch: int) -> Callable[[Site, int, Tensor], None]:
    """Return a watcher that notes how far every row moved, by dimension that the batch divides."""

    def watch(site: Site, index: int, h: Tensor) -> None:
        calls = base.calls.get(site, [])
        if index >= len(calls) or calls[index].shape != h.shape or not h.numel():
            return
        change = (torch.nan_to_num(h.detach()) - torch.nan_to_num(calls[index])).abs()
        by_dim = moved.rows.setdefault((site, index), {})
        for dim, size in enumerate(change.shape):
            if size % batch == 0:
                rows = measure_rows(change, dim).cpu().double()
                by_dim.setdefault(dim, []).append(rows.where(rows > _NOISE * rows.max(), 0.0))

    return watch


def _find_misfits(base: Pass, batch: int) -> list[Unresolved]:
    """Return the sites whose stated layout does not fit their activation."""
    return [
        site.unresolved(h.shape, f"does not hold {batch} windows as stated ({site.stated})")
        for site, _, h in base.indexed
        if site.adaptive and site.stated is not None and h.numel()
        if not site.stated.fits(h.shape, batch)
    ]


def _describe(layout: SiteLayout, batch: int) -> str:
    """Say that a layout does not hold."""
    return (
        f"does not follow its layout ({layout}) in training: in this batch of {batch} windows "
        "rows depend on other windows, as when forward sorts, shuffles, mixes or routes them"
    )
