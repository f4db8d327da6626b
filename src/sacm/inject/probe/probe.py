"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the windows as they are, one with another seed (is the evaluation itself random?), one
for each disturbed window. Sites whose input does not depend on the window are resolved from the
other side: disturb rows of their output and watch whose result moves (`output_side.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.errors import LayoutError
from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import WINDOWS, ProbeBatch, cut_batch, take_whole_batch
from sacm.inject.probe.infer_layout import FAINT, describe_mixing, find_layout, movement
from sacm.inject.probe.nondeterminism import find_random_parts, tensors_equal
from sacm.inject.probe.output_side import OutputSide, find_readable_outputs
from sacm.inject.probe.passes import Pass, PassRunner
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.probe.verify import LayoutCheck
from sacm.inject.sites import Site
from sacm.inject.state import Call
from sacm.inject.unresolved import Unresolved, layout_error
from sacm.inject.window_argument import WindowArgument

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT))
_FEW_SEEDS, _MANY_SEEDS = 3, 32  # tried to reach all sites, and to reach one that is wanted
_EMPTY = "empty: its activation has no entries"


@dataclass
class Probe:
    """Finds layouts with few windows.

    Args:
        runner: Runs the model with a tap at every site.
        window: Finds the window among the arguments.
        stated: Layouts that the model itself states for its sites.
        training: Probe in training mode, where functional dropout shows.
    """

    runner: PassRunner
    window: WindowArgument
    stated: Mapping[str, SiteLayout]
    training: bool = False
    problems: dict[Site, Unresolved] = field(default_factory=dict)

    def run(self, call: Call, *, wanted: Site | None = None) -> list[str]:
        """Fill in `layouts` and `reached` of the sites; returns what is random in evaluation.

        Args:
            call: A call of the model with a batch of any size.
            wanted: A site that must be reached, even if the model seldom calls it.

        Raises:
            LayoutError: Layouts could not be found; the message lists every such site.
        """
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=False)
            batch = self.choose_batch(call)
            random = self._random_evaluation(batch.call) if wanted is None else []
            self.runner.set_flags(training=self.training)
            for seed in self._telling_seeds(batch.call, wanted):
                self._resolve(batch, seed, wanted)
        # Few windows may leave open what the whole batch tells: one that is padded, or means of it.
        check = LayoutCheck(self.runner, self.window)
        open_sites = {s: why for s, why in self.problems.items() if not check.resolve(call, s)}
        if open_sites:
            raise layout_error(type(self.runner.model).__name__, list(open_sites.values()))
        return random

    def choose_batch(self, call: Call, count: int = WINDOWS) -> ProbeBatch:
        """Return a batch of few windows that the model takes; the whole batch if it takes no few.

        Raises:
            Exception: Whatever the model raises at its own arguments.
        """
        for batch in cut_batch(call, self.window, count):
            try:
                self.runner.run(batch.call)
            except LayoutError:
                raise
            except Exception:  # whatever a model raises at arguments that do not fit
                continue
            return batch
        whole = take_whole_batch(call, self.window)
        self.runner.run(whole.call)
        return whole

    def _random_evaluation(self, call: Call) -> list[str]:
        """Return the parts that differ between two seeds although the model evaluates."""
        first, second = self.runner.run(call, seed=0), self.runner.run(call, seed=1)
        if tensors_equal(first.outputs, second.outputs):
            return []
        return find_random_parts(self.runner.model, lambda seed: self.runner.run(call, seed=seed))

    def _telling_seeds(self, call: Call, wanted: Site | None) -> Iterator[int]:
        """Yield seeds that show new sites; several where training leaves out layers at random."""
        if not self.training:
            yield 0
            return
        seen: set[Site] = set()
        for seed in range(_MANY_SEEDS):
            if seed >= _FEW_SEEDS and (wanted is None or wanted in seen):
                return
            calls = set(self.runner.run(call, seed=seed).calls)
            if calls - seen:
                seen |= calls
                yield seed

    def _resolve(self, batch: ProbeBatch, seed: int, wanted: Site | None) -> None:
        """Find the layout of every call that a pass with this seed makes."""
        base = self.runner.run(batch.call, seed=seed)
        if batch.count > WINDOWS:
            self._leave_to_whole_batch(base, batch.count)
            return
        for strength, cross_talk in ATTEMPTS:
            disturbed = [
                self.runner.run(
                    batch.disturb(torch.arange(batch.count) == i, strength, i + 1), seed=seed
                )
                for i in range(batch.count)
            ]
            reading = _read(base, disturbed, cross_talk)
            if not reading.mixed and not reading.unlike:
                break
        for site, index in reading.mixed:
            changes = [movement(base.calls[site][index], p.calls[site][index]) for p in disturbed]
            self._use_statement(site, changes)
        readable = find_readable_outputs(base, disturbed)
        for site, index in reading.unmoved:
            shape = base.calls[site][index].shape
            known = site.stated is not None or any(seen == shape for seen, _ in site.layouts)
            if not known and site.adaptive:
                side = OutputSide(self.runner, batch, seed, base, readable)
                self._resolve_from_output(side, site, index, may_leave=wanted is None)

    def _leave_to_whole_batch(self, base: Pass, count: int) -> None:
        """Note the sites of a model that takes no few windows; all of its batch is asked later."""
        why = f"does not show its windows, and the model takes no other batch than {count} of them"
        for site, _, h in base.indexed:
            site.reached = True
            if site.adaptive and site.stated is None:
                self.problems.setdefault(site, site.unresolved(h.shape, why))

    def _use_statement(self, site: Site, changes: Sequence[Tensor]) -> None:
        """Use the model's own statement about an activation that seems to mix windows."""
        stated, shape = self.stated.get(site.name), changes[0].shape
        if stated is not None and stated.fits(shape, len(changes)):
            site.learn(shape, stated)
        elif site.adaptive and site.stated is None:
            self.problems.setdefault(site, site.unresolved(shape, describe_mixing(changes)))

    def _resolve_from_output(
        self, side: OutputSide, site: Site, index: int, *, may_leave: bool
    ) -> None:
        """Resolve a call whose input no window moves; it may have no layout for a good reason."""
        shape = side.base.calls[site][index].shape
        layout = self.stated.get(site.name) or side.find_layout(site, index)
        if layout is not None:
            site.learn(shape, layout)
            return
        if not side.has_effect(site, index):
            reason = "no effect: depends on no window and changes nothing that the model returns"
        elif self._keeps_shape(side, site, index):
            reason = "shared by all windows: its activation does not depend on the batch"
        elif not side.readable:
            reason = "depends on no window, and no output shows the windows one by one"
            may_leave = False
        else:
            reason = "depends on no window, and each of its rows changes the results of several"
            may_leave = False
        if may_leave:
            site.leave_ordinary(reason)
        else:
            self.problems.setdefault(site, site.unresolved(shape, reason))

    def _keeps_shape(self, side: OutputSide, site: Site, index: int) -> bool:
        """True if the activation has the same shape with one window less."""
        smaller = self.choose_batch(side.batch.call, side.batch.count - 1)
        if smaller.count == side.batch.count:  # the model takes no fewer
            return False
        calls = self.runner.run(smaller.call, seed=side.seed).calls.get(site, [])
        return len(calls) > index and calls[index].shape == side.base.calls[site][index].shape


@dataclass
class SiteReadings:
    """The calls, as (site, index), that the inputs of the sites leave open."""

    unmoved: list[tuple[Site, int]] = field(default_factory=list)
    mixed: list[tuple[Site, int]] = field(default_factory=list)
    unlike: list[tuple[Site, int]] = field(default_factory=list)  # in shape or number


def _read(base: Pass, disturbed: Sequence[Pass], cross_talk: float) -> SiteReadings:
    """Find layouts from the inputs of the sites."""
    reading = SiteReadings()
    for site, index, h in base.indexed:
        site.reached = True
        others = [p.calls[site][index] for p in disturbed if len(p.calls.get(site, ())) > index]
        changes = [movement(h, other) for other in others if other.shape == h.shape]
        if h.numel() == 0:
            if all(call.numel() == 0 for call in base.calls[site]):
                site.leave_ordinary(_EMPTY)
        elif len(changes) < len(disturbed):
            reading.unlike.append((site, index))
        elif not any(bool(change.any()) for change in changes):
            reading.unmoved.append((site, index))
        elif (layout := find_layout(changes, cross_talk=cross_talk)) is not None:
            site.learn(h.shape, layout)
        else:
            reading.mixed.append((site, index))
    return reading
