"""Verify layouts on a whole training batch, in training mode.

The probe sees few windows and, for modules, evaluation mode. A model may sort its batch by length,
shuffle it, mix windows up in training or route them by their values. So now and then the layouts
are checked on a real batch: one pass as it is, one with half of the windows disturbed, one with
the other half. A row must move with the half that its window is in, and not with the other.

Where rows do, windows are disturbed one by one. That tells a batch in another order from a scale
that is computed from the whole batch, which every window moves a little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch, take_whole_batch
from sacm.inject.probe.disturbed import CallKey, Movements, disturb_alone, disturb_halves
from sacm.inject.probe.infer_layout import FAINT, list_candidates
from sacm.inject.probe.nondeterminism import tensors_equal
from sacm.inject.probe.passes import Pass, PassRunner
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.sites import Site
from sacm.inject.state import Call
from sacm.inject.unresolved import Unresolved
from sacm.inject.window_argument import WindowArgument

# As in the probe: a choice made for the whole batch may flip under a strong disturbance. A layout
# is refused only if every attempt that shows anything contradicts it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1e-4, FAINT))
_ATTEMPTS_ALONE = ((1e-3, FAINT), (1e-4, FAINT), (1.0, FAINT))
_SPLITS = 3  # halves that tell candidates for an unknown layout apart
_ALONE = 64  # most windows that are disturbed one by one
_REPETITIONS = 3  # undisturbed passes that must agree before a layout is refused

_FORWARDS = (4, 16, 64, 256, 1024)  # checked; then every 1024th
_COMPARED = 16  # forwards whose batch is compared with the example inputs, at most


@dataclass
class Verification:
    """Counts training forwards and checks of one model, and keeps what the first check found.

    `example` holds the checked example windows until the first other batch comes, which is checked.
    Who trains on nothing else soon pays for comparing no more.
    """

    forwards: int = 0
    done: int = 0
    example: Tensor | None = None
    failure: str = ""  # what the model raised in the last check
    random_training: list[tuple[str, str]] = field(default_factory=list)  # place, operation

    def is_due(self, window: Tensor) -> bool:
        """Count a training forward; returns whether its batch should be checked."""
        self.forwards += 1
        regular = self.forwards in _FORWARDS or self.forwards % _FORWARDS[-1] == 0
        if self.example is None:
            return regular or not self.done
        if self.forwards < _COMPARED:
            example = self.example.to(window.device)
            if example.shape == window.shape and torch.equal(example, window):
                return False
        self.example = None
        return True


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
        """Return the sites whose layout does not hold for this batch, by one pair of halves."""
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            if batch.count < 2:
                return []
            base = self.runner.run(batch.call, seed=seed)
            suspects = Suspects(self._known_layouts(base, batch.count))
            half = _choose_half(batch.count, seed)
            for strength, cross_talk in _ATTEMPTS:
                moved = disturb_halves(self.runner, batch, base, half, strength, seed)
                suspects.clear_explained(moved, cross_talk)
                if not suspects.layouts:
                    return []
            suspects.keep_contradicted(self._run_again(batch, base, seed))
            windows = _choose_windows(suspects.windows, batch.count, seed)
            # What halves say is no proof: that needs a single window that moves another's rows.
            suspects.against = {}
            for strength, cross_talk in _ATTEMPTS_ALONE:
                if suspects.layouts:
                    alone = disturb_alone(self.runner, batch, base, windows, strength, seed)
                    suspects.clear_explained(alone, cross_talk)
            for _ in range(_REPETITIONS):
                if suspects.layouts:
                    suspects.keep_contradicted(self._run_again(batch, base, seed))
        return [
            site.unresolved(base.calls[site][index].shape, _describe(layout, batch.count))
            for (site, index), layout in suspects.layouts.items()
        ]

    def resolve(self, call: Call, wanted: Site) -> bool:
        """Find the layouts of one site's activations at the size of this batch.

        This finds what few windows do not show, such as a fold by a period that only the whole
        batch has.

        Returns:
            Whether all of them are known now.
        """
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=True)
            batch = take_whole_batch(call, self.window)
            base = self.runner.run(batch.call)
            if self._is_known(base, wanted, batch.count):
                return True
            for cross_talk, evidence in self._gather_evidence(batch, base):
                self._learn(batch, base, wanted, cross_talk, evidence)
                if self._is_known(base, wanted, batch.count):
                    return True
        return False

    def _gather_evidence(
        self, batch: ProbeBatch, base: Pass
    ) -> Iterator[tuple[float, list[Movements]]]:
        """Yield movements, and the cross-talk to forgive in them, as long as they are asked for."""
        halves = [_choose_half(batch.count, number) for number in range(_SPLITS)]
        for strength, cross_talk in _ATTEMPTS:
            yield (
                cross_talk,
                [disturb_halves(self.runner, batch, base, h, strength, 0) for h in halves],
            )
        windows = _choose_windows((), batch.count, seed=0)
        for strength, cross_talk in _ATTEMPTS_ALONE:
            yield cross_talk, [disturb_alone(self.runner, batch, base, windows, strength, 0)]

    def _is_known(self, base: Pass, wanted: Site, batch: int) -> bool:
        """Return whether every call of a site has a layout."""
        return all(wanted.known_layouts(h.shape, batch) for h in base.calls.get(wanted, []))

    def _learn(
        self,
        batch: ProbeBatch,
        base: Pass,
        wanted: Site,
        cross_talk: float,
        evidence: list[Movements],
    ) -> None:
        """Give every call of a site the first layout that explains all of the evidence."""
        for index, h in enumerate(base.calls.get(wanted, [])):
            for layout in list_candidates(h.shape, batch.count):
                key = (wanted, index)
                if all(moved.is_explained(key, layout, cross_talk) for moved in evidence):
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


@dataclass
class Suspects:
    """Layouts that no attempt has explained yet, and the windows that speak against them."""

    layouts: dict[CallKey, SiteLayout]
    against: dict[CallKey, set[int]] = field(default_factory=dict)

    @property
    def windows(self) -> set[int]:
        """The windows whose rows moved with others, at any call."""
        return set().union(*self.against.values())

    def clear_explained(self, moved: Movements, cross_talk: float) -> None:
        """Forget the layouts that these movements follow."""
        for key, layout in list(self.layouts.items()):
            foreign = moved.find_foreign_windows(key, layout, cross_talk)
            if foreign:
                self.against[key] = foreign
            elif foreign is not None:
                del self.layouts[key]
                self.against.pop(key, None)

    def keep_contradicted(self, unsteady: set[CallKey]) -> None:
        """Forget the layouts that nothing speaks against, or only calls that prove nothing."""
        self.layouts = {
            key: layout
            for key, layout in self.layouts.items()
            if key in self.against and key not in unsteady
        }
        self.against = {key: self.against[key] for key in self.layouts}


def _choose_half(count: int, number: int) -> Tensor:
    """Return about half of the windows, boolean `[count]`.

    It is one binary digit of the places in a random order, so that any two windows have been in
    different halves once all digits had their turn.
    """
    digits = max(1, (count - 1).bit_length())
    places = _random_order(count, number // digits)
    return (places >> number % digits) % 2 == 1


def _choose_windows(first: Iterable[int], count: int, seed: int) -> list[int]:
    """Return the windows to disturb one by one: the given ones first, then others at random."""
    return list(dict.fromkeys([*first, *_random_order(count, seed).tolist()]))[:_ALONE]


def _random_order(count: int, seed: int) -> Tensor:
    """Return a random order of the windows, `[count]`."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def _describe(layout: SiteLayout, batch: int) -> str:
    """Say what was found of a layout that does not hold."""
    return (
        f"does not follow its layout ({layout}) in training: in this batch of {batch} windows "
        "rows depend on other windows, as when forward sorts, shuffles, mixes or routes them"
    )
