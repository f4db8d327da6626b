"""Verify layouts on a whole training batch, in training mode.

The probe sees few windows and, for modules, evaluation mode. A model may sort its batch by length,
shuffle it, mix windows up in training or route them by their values. So now and then the layouts
are checked on a real batch: one pass as it is, one with a random half of the windows disturbed, one
with the other half. A row must move with the half that its window is in, and not with the other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch, take_whole_batch
from sacm.inject.probe.infer_layout import FAINT, list_candidates, measure_rows, share_explained
from sacm.inject.probe.nondeterminism import tensors_equal
from sacm.inject.probe.passes import Pass, PassRunner
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.sites import Site
from sacm.inject.state import Call
from sacm.inject.unresolved import Unresolved
from sacm.inject.window_argument import WindowArgument

# As in the probe: a choice made for the whole batch may flip under a strong disturbance. A layout
# is refused only if every attempt contradicts it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1e-4, FAINT))
_NOISE = 1e-5  # movements this much smaller than the largest are rounding
_SPLITS = 3  # random halves that tell candidates for an unknown layout apart

_FORWARDS = (4, 16, 64, 256, 1024)  # checked; then every 1024th

CallKey = tuple[Site, int]


@dataclass
class Verification:
    """Counts training forwards and checks of one model, and keeps what the first check found.

    `example` holds the checked example windows until the first other batch comes, which is checked.
    """

    forwards: int = 0
    done: int = 0
    example: Tensor | None = None
    random_training: list[tuple[str, str]] = field(default_factory=list)  # place, operation

    def is_due(self, window: Tensor) -> bool:
        """Count a training forward; returns whether its batch should be checked."""
        self.forwards += 1
        regular = self.forwards in _FORWARDS or self.forwards % _FORWARDS[-1] == 0
        if self.example is None:
            return regular or not self.done
        example = self.example.to(window.device)
        if example.shape == window.shape and torch.equal(example, window):
            return False
        self.example = None
        return True


@dataclass
class Halves:
    """Movements of one activation under each half, for every dimension that holds windows."""

    rows: dict[int, list[Tensor]] = field(default_factory=dict)  # dim -> [rows] of each half


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

    def find_contradictions(self, call: Call, seed: int) -> list[Unresolved]:
        """Return the sites whose layout does not hold for this batch; one random half is tried."""
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            if batch.count < 2:
                return []
            base = self.runner.run(batch.call, seed=seed)
            half = _random_half(batch.count, seed)
            open_calls = self._known_layouts(base, batch.count)
            for strength, cross_talk in _ATTEMPTS:
                moved = self._run_halves(batch, base, half, strength, seed)
                open_calls = {
                    key: layout
                    for key, layout in open_calls.items()
                    if _contradicts(moved.get(key), layout, half, cross_talk)
                }
                if not open_calls:
                    return []
            unsteady = self._run_again(batch, base, seed)
            open_calls = {k: v for k, v in open_calls.items() if k not in unsteady}
        return [
            site.unresolved(base.calls[site][index].shape, _describe(layout, batch.count))
            for (site, index), layout in open_calls.items()
        ]

    def resolve(self, call: Call, wanted: Site) -> None:
        """Find the layouts of one site's activations at the size of this batch.

        This finds what few windows do not show, such as a fold by a period that only the whole
        batch has.
        """
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            base = self.runner.run(batch.call)
            halves = [_random_half(batch.count, seed) for seed in range(_SPLITS)]
            for strength, cross_talk in _ATTEMPTS:
                calls = base.calls.get(wanted, [])
                if all(wanted.known_layouts(h.shape, batch.count) for h in calls):
                    return
                moved = [self._run_halves(batch, base, half, strength, 0) for half in halves]
                for index, h in enumerate(base.calls.get(wanted, [])):
                    key = (wanted, index)
                    for layout in list_candidates(h.shape, batch.count):
                        if all(
                            _explains(by_call.get(key), layout, half, cross_talk)
                            for by_call, half in zip(moved, halves, strict=True)
                        ):
                            wanted.learn(h.shape, layout)
                            break

    def _known_layouts(self, base: Pass, batch: int) -> dict[CallKey, SiteLayout]:
        """Return the layouts to check: one for every call that has exactly one."""
        found = {}
        for site, index, h in base.indexed:
            if site.adaptive and site.stated is None and site.name not in self.trusted:
                known = site.known_layouts(h.shape, batch)
                if len(known) == 1:
                    found[site, index] = known.pop()
        return found

    def _run_again(self, batch: ProbeBatch, base: Pass, seed: int) -> set[CallKey]:
        """Return the calls that differ although nothing was disturbed, so they prove nothing."""
        again = {(site, i): h for site, i, h in self.runner.run(batch.call, seed=seed).indexed}
        return {
            (site, i)
            for site, i, h in base.indexed
            if (site, i) not in again or not tensors_equal([h], [again[site, i]])
        }

    def _run_halves(
        self, batch: ProbeBatch, base: Pass, half: Tensor, strength: float, seed: int
    ) -> dict[CallKey, Halves]:
        """Disturb each half of the windows and measure how far the rows of every call move."""
        moved: dict[CallKey, Halves] = {}
        for chosen in (~half, half):

            def watch(site: Site, index: int, h: Tensor) -> None:
                calls = base.calls.get(site, [])
                if index < len(calls) and calls[index].shape == h.shape:
                    found = moved.setdefault((site, index), Halves())
                    for dim, rows in _measure_all_rows(calls[index], h, batch.count).items():
                        found.rows.setdefault(dim, []).append(rows)

            disturbed = batch.disturb(chosen, strength, seed + 1)
            state = self.runner.run(disturbed, seed=seed, watch=watch).random_state
            if not torch.equal(state, base.random_state):
                return {}  # other random numbers, perhaps drawn by another thread: no evidence
        return moved


def _random_half(count: int, seed: int) -> Tensor:
    """Return a random half of the windows, boolean `[count]`."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order < count // 2


def _measure_all_rows(base: Tensor, other: Tensor, batch: int) -> dict[int, Tensor]:
    """Return the movement of every row, by dimension whose size the batch divides."""
    change = (torch.nan_to_num(other.detach()) - torch.nan_to_num(base)).abs()
    found = {}
    for dim, size in enumerate(change.shape):
        if size and size % batch == 0 and change.numel():
            rows = measure_rows(change, dim).cpu().double()
            found[dim] = rows.where(rows > _NOISE * rows.max(), 0.0)
    return found


def _owners_and_moves(
    moved: Halves | None, layout: SiteLayout, half: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Return movements `[2, rows]` and each row's half `[rows]`; None if shapes differ."""
    rows = [] if moved is None else moved.rows.get(layout.dim, [])
    if len(rows) != 2:
        return None
    return torch.stack(rows), half.long()[layout.owners(len(half))]


def _contradicts(moved: Halves | None, layout: SiteLayout, half: Tensor, cross_talk: float) -> bool:
    """Return whether rows moved with the half that their window is not in."""
    pair = _owners_and_moves(moved, layout, half)
    return pair is not None and bool(pair[0].any()) and share_explained(*pair, cross_talk) == 0.0


def _explains(moved: Halves | None, layout: SiteLayout, half: Tensor, cross_talk: float) -> bool:
    """Return whether rows moved with the half that their window is in, and only with that."""
    pair = _owners_and_moves(moved, layout, half)
    return pair is not None and share_explained(*pair, cross_talk) > 0.0


def _describe(layout: SiteLayout, batch: int) -> str:
    """Say what was found of a layout that does not hold."""
    return (
        f"does not follow its layout ({layout}) in training: in this batch of {batch} windows "
        "rows depend on other windows, as when forward sorts, shuffles, mixes or routes them"
    )
