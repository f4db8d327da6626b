"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the windows as they are, one with another seed (is the evaluation itself random?), one
for each disturbed window. Sites whose input does not depend on the window are resolved from the
other side: disturb rows of their output and watch whose result moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.errors import LayoutError
from sacm.inject.layout import SiteLayout, Unresolved, layout_error
from sacm.inject.probe.batch import WINDOWS, ProbeBatch, cut_batch, take_whole_batch
from sacm.inject.probe.infer import (
    FAINT,
    describe_mixing,
    find_layout,
    list_candidates,
    measure_rows,
    movement,
)
from sacm.inject.probe.run import Call, Pass, PassRunner, restored_afterwards
from sacm.inject.probe.verify import LayoutCheck
from sacm.inject.sites import Site
from sacm.inject.window import WindowArgument

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT))
_TRAINING_SEEDS = 3  # tried to reach all sites where training leaves out layers at random

CallKey = tuple[Site, int]  # a site, and the position among its calls


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

    def run(self, call: Call) -> list[str]:
        """Fill in `layouts` and `reached` of the sites; returns what is random in evaluation.

        Args:
            call: A call of the model with a batch of any size.

        Raises:
            LayoutError: Layouts could not be found; the message lists every such site.
        """
        with restored_afterwards(self.runner.model):
            self.runner.set_flags(training=False)
            batch = self.choose_batch(call)
            random_parts = self.runner.find_random_parts(batch.call)
            self.runner.set_flags(training=self.training)
            for seed in self._telling_seeds(batch.call):
                self._resolve(batch, seed)
        # Few windows may leave open what the whole batch tells: one that is padded, or means of it.
        check = LayoutCheck(self.runner, self.window)
        unknown = set(self.problems) - check.learn(call, set(self.problems))
        if unknown:
            problems = [why for site, why in self.problems.items() if site in unknown]
            raise layout_error(type(self.runner.model).__name__, problems)
        return random_parts

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

    def _telling_seeds(self, call: Call) -> Iterator[int]:
        """Yield seeds that show new sites; several where training leaves out layers at random."""
        seen: set[Site] = set()
        for seed in range(_TRAINING_SEEDS if self.training else 1):
            reached = set(self.runner.run(call, seed=seed).calls)
            if not seed or reached - seen:
                seen |= reached
                yield seed

    def _resolve(self, batch: ProbeBatch, seed: int) -> None:
        """Find the layout of every call that a pass with this seed makes."""
        base = self.runner.run(batch.call, seed=seed)
        for site in base.calls:
            site.reached = True
            if all(h.numel() == 0 for h in base.calls[site]):
                site.leave_ordinary("empty: its activation has no entries")
        if batch.count > WINDOWS:
            self._leave_to_whole_batch(base, batch.count)
            return
        for strength, cross_talk in _ATTEMPTS:
            disturbed = [
                self.runner.run(
                    batch.disturb(torch.arange(batch.count) == i, strength, i + 1), seed=seed
                )
                for i in range(batch.count)
            ]
            unmoved, mixed, changed_shape = _read(base, disturbed, cross_talk)
            if not mixed and not changed_shape:
                break
        for site, index in mixed:
            changes = [movement(base.calls[site][index], p.calls[site][index]) for p in disturbed]
            self._use_statement(site, changes)
        side = OutputSide(self.runner, batch, seed, base, find_readable_outputs(base, disturbed))
        for site, index in unmoved:
            shape = base.calls[site][index].shape
            known = site.stated is not None or any(seen == shape for seen, _ in site.layouts)
            if not known and site.adaptive:
                self._resolve_from_output(side, site, index)

    def _leave_to_whole_batch(self, base: Pass, count: int) -> None:
        """Note the sites of a model that takes no few windows; all of its batch is asked later."""
        why = f"does not show its windows, and the model takes no other batch than {count} of them"
        for site, _, h in base.indexed:
            if site.adaptive and site.stated is None:
                self.problems.setdefault(site, site.unresolved(h.shape, why))

    def _use_statement(self, site: Site, changes: Sequence[Tensor]) -> None:
        """Use the model's own statement about an activation that seems to mix windows."""
        stated, shape = self.stated.get(site.name), changes[0].shape
        if stated is not None and stated.fits(shape, len(changes)):
            site.learn(shape, stated)
        elif site.adaptive and site.stated is None:
            self.problems.setdefault(site, site.unresolved(shape, describe_mixing(changes)))

    def _resolve_from_output(self, side: OutputSide, site: Site, index: int) -> None:
        """Resolve a call whose input no window moves; it may have no layout for a good reason."""
        shape = side.base.calls[site][index].shape
        layout = self.stated.get(site.name) or side.find_layout(site, index)
        if layout is not None:
            site.learn(shape, layout)
        elif not side.has_effect(site, index):
            site.leave_ordinary(
                "no effect: depends on no window and changes nothing that the model returns"
            )
        elif self._keeps_shape(side, site, index):
            site.leave_ordinary(
                "shared by all windows: its activation does not depend on the batch"
            )
        else:
            why = "depends on no window, and " + (
                "each of its rows changes the results of several"
                if side.readable
                else "no output shows the windows one by one"
            )
            self.problems.setdefault(site, site.unresolved(shape, why))

    def _keeps_shape(self, side: OutputSide, site: Site, index: int) -> bool:
        """Return whether the activation has the same shape with one window less."""
        smaller = self.choose_batch(side.batch.call, side.batch.count - 1)
        if smaller.count == side.batch.count:  # the model takes no fewer
            return False
        calls = self.runner.run(smaller.call, seed=side.seed).calls.get(site, [])
        return len(calls) > index and calls[index].shape == side.base.calls[site][index].shape


def _read(
    base: Pass, disturbed: Sequence[Pass], cross_talk: float
) -> tuple[list[CallKey], list[CallKey], list[CallKey]]:
    """Find layouts from the inputs of the sites.

    Returns:
        The calls that no window moves, that mix windows, and that change shape or number.
    """
    unmoved: list[CallKey] = []
    mixed: list[CallKey] = []
    changed_shape: list[CallKey] = []
    for site, index, h in base.indexed:
        if h.numel() == 0:
            continue
        others = [p.calls[site][index] for p in disturbed if len(p.calls.get(site, ())) > index]
        changes = [movement(h, other) for other in others if other.shape == h.shape]
        if len(changes) < len(disturbed):
            changed_shape.append((site, index))
        elif not any(bool(change.any()) for change in changes):
            unmoved.append((site, index))
        elif (layout := find_layout(changes, cross_talk=cross_talk)) is not None:
            site.learn(h.shape, layout)
        else:
            mixed.append((site, index))
    return unmoved, mixed, changed_shape


def find_readable_outputs(base: Pass, disturbed: Sequence[Pass]) -> list[tuple[int, SiteLayout]]:
    """Return the outputs (index, layout) in which the part of every window is known."""
    readable = []
    for index, output in enumerate(base.outputs):
        others = [p.outputs[index] for p in disturbed if len(p.outputs) > index]
        changes = [movement(output, other) for other in others if other.shape == output.shape]
        if len(changes) == len(disturbed) and all(bool(change.any()) for change in changes):
            layout = find_layout(changes)
            if layout is not None:
                readable.append((index, layout))
    return readable


@dataclass
class OutputSide:
    """A pass, and the outputs in which the part of every window is known."""

    runner: PassRunner
    batch: ProbeBatch
    seed: int
    base: Pass
    readable: Sequence[tuple[int, SiteLayout]]

    def find_layout(self, site: Site, index: int) -> SiteLayout | None:
        """Return the layout under which each window's rows change that window's result alone."""
        shape = self.base.calls[site][index].shape
        for layout in list_candidates(shape, self.batch.count):
            if self.readable and self._explains(site, index, layout):
                return layout
        return None

    def has_effect(self, site: Site, index: int) -> bool:
        """Return whether anything that the model returns changes with this call's activation."""
        rows = torch.arange(self.base.calls[site][index].shape[0])
        outputs = self._run_disturbed(site, index, 0, rows)
        pairs = zip(self.base.outputs, outputs, strict=False)
        return len(outputs) != len(self.base.outputs) or any(
            before.shape != after.shape or bool(movement(before, after).any())
            for before, after in pairs
        )

    def _explains(self, site: Site, index: int, layout: SiteLayout) -> bool:
        """Return whether disturbing the rows of each window moves that window's result alone."""
        owners = layout.owners(self.batch.count)
        for window in range(self.batch.count):
            rows = (owners == window).nonzero()[:, 0]
            outputs = self._run_disturbed(site, index, layout.dim, rows)
            changes = [movement(self.base.outputs[i], outputs[i]) for i, _ in self.readable]
            if not any(bool(change.any()) for change in changes):
                return False
            for change, (_, where) in zip(changes, self.readable, strict=True):
                touched = measure_rows(change, where.dim) > 0
                if bool((touched & (where.owners(self.batch.count) != window)).any()):
                    return False
        return True

    def _run_disturbed(self, site: Site, index: int, dim: int, rows: Tensor) -> list[Tensor]:
        """Run the model with noise in some rows of one call's activation."""

        def alter(called: Site, position: int, h: Tensor) -> Tensor | None:
            if called is not site or position != index:
                return None
            noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7))
            where = rows.to(h.device)
            noise = noise.to(h.device, h.dtype).index_select(dim, where)
            return h.index_add(dim, where, noise)

        return self.runner.run(self.batch.call, seed=self.seed, alter=alter).outputs
