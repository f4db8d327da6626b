"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the batch as it is, and one for each of some windows that are disturbed alone. A row
belongs to the window that moves it. Sites whose input does not depend on any window are resolved
from the other side: disturb rows of the activation and watch whose result moves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sacm.errors import ArgumentError, SACMError
from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch, take_batch
from sacm.inject.probe.infer import (
    ANY,
    FAINT,
    find_layout,
    list_candidates,
    measure_rows,
)
from sacm.inject.probe.run import Call, CallKey, Pass, PassRunner, Visit
from sacm.inject.sites import Site
from sacm.inject.window import WindowArgument

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1.0, FAINT))
_MOST_DISTURBED = 8  # windows of a batch that are disturbed, one by one
_SEEDS = 3  # tried to reach all sites where training leaves out layers at random

Rows = dict[int, Tensor]  # movements [passes, rows] by dimension


@dataclass
class Evidence:
    """What the disturbed passes show about the calls of one pass."""

    layouts: dict[CallKey, SiteLayout] = field(default_factory=dict)  # that explain a call
    unmoved: set[CallKey] = field(default_factory=set)  # by any window
    mixed: set[CallKey] = field(default_factory=set)  # that no layout explains


@dataclass
class Probe:
    """Finds layouts, and verifies them on other batches.

    Args:
        runner: Runs the model with a tap at every site.
        window: Finds the window among the arguments.
    """

    runner: PassRunner
    window: WindowArgument

    def find(self, call: Call) -> dict[str, str]:
        """Fill in `layouts` and `reached` of the sites.

        Returns:
            By name of a site, why its layout could not be found.
        """
        batch = take_batch(call, self.window)
        problems: dict[str, str] = {}
        reached: set[Site | None] = set()
        for seed in range(_SEEDS):
            base = self.runner.run(batch.call, seed=seed)
            sites = {site for site, _ in base.calls}
            if not sites <= reached:
                reached |= sites
                candidates = {
                    key: [*list_candidates(h.shape, batch.count)] for key, h in base.calls.items()
                }
                problems = self._examine(batch, base, candidates, seed) | problems
        return problems

    def verify(self, call: Call, seed: int) -> dict[str, str]:
        """Check the known layouts on another batch, and find those of new activations.

        Returns:
            By name of a site, why its layout does not hold.
        """
        batch = take_batch(call, self.window)
        base = self.runner.run(batch.call, seed=seed)
        candidates = {}
        for key, h in base.calls.items():
            known = set() if key[0] is None else key[0].known_layouts(h.shape, batch.count)
            candidates[key] = list(known or list_candidates(h.shape, batch.count))
        return self._examine(batch, base, candidates, seed)

    def _examine(
        self,
        batch: ProbeBatch,
        base: Pass,
        candidates: dict[CallKey, list[SiteLayout]],
        seed: int,
    ) -> dict[str, str]:
        """Let the sites learn the candidates that explain their calls; describe the others."""
        problems: dict[str, str] = {}
        unknown: dict[CallKey, list[SiteLayout]] = {}
        for key, h in base.calls.items():
            site = key[0]
            if site is not None:
                site.reached = True
            if site is None or site.stated is None:
                if site is None or site.adaptive:
                    unknown[key] = candidates[key]
            elif site.adaptive and h.numel() and not site.stated.fits(h.shape, batch.count):
                why = f"does not hold {batch.count} windows as stated ({site.stated})"
                problems[site.name] = site.describe_problem(h.shape, why)
        if not any(site for site, _ in unknown):
            return problems
        evidence = self._gather(batch, base, unknown, seed)
        outputs = {key: layout for key, layout in evidence.layouts.items() if key[0] is None}
        for (site, index), h in base.calls.items():
            if site is None:
                continue
            if (site, index) in evidence.layouts:
                site.learn(h.shape, evidence.layouts[site, index])
            elif (site, index) in evidence.mixed:
                why = _describe_mixing(site, h.shape, batch.count)
                problems.setdefault(site.name, site.describe_problem(h.shape, why))
            elif (site, index) in evidence.unmoved:
                self._resolve_from_outputs(batch, base, (site, index), outputs, seed)
        return problems

    def _gather(
        self,
        batch: ProbeBatch,
        base: Pass,
        candidates: dict[CallKey, list[SiteLayout]],
        seed: int,
    ) -> Evidence:
        """Disturb windows until every call is explained, or all attempts have been made."""
        evidence, remaining = Evidence(), dict(candidates)
        order = torch.randperm(batch.count, generator=torch.Generator().manual_seed(seed))
        windows = order[:_MOST_DISTURBED]
        passes = _number(windows, batch.count)
        for strength, cross_talk in _ATTEMPTS:
            if not any(site for site, _ in remaining):
                break
            calls = [(batch.disturb(window, strength), None) for window in windows.tolist()]
            for key, rows in self._measure(calls, base, batch.count, seed, remaining).items():
                if bool(rows[ANY].any()):
                    layout = find_layout(rows, remaining[key], passes, cross_talk)
                    if layout is None:
                        evidence.mixed.add(key)
                        continue
                    evidence.layouts[key] = layout
                    evidence.mixed.discard(key)
                elif key in evidence.mixed:
                    continue
                else:
                    evidence.unmoved.add(key)
                del remaining[key]
        return evidence

    def _measure(
        self,
        calls: Sequence[tuple[Call, Visit | None]],
        base: Pass,
        windows: int,
        seed: int,
        keys: Collection[CallKey],
    ) -> dict[CallKey, Rows]:
        """Return how far rows moved in passes, for calls that keep their shape in all of them.

        Raises:
            ArgumentError: The model does not take disturbed windows.
        """
        measured: dict[CallKey, list[Rows]] = {}
        for call, alter in calls:

            def visit(key: CallKey, h: Tensor, alter: Visit | None = alter) -> Tensor | None:
                expected = base.calls.get(key)
                if expected is not None and key in keys and expected.shape == h.shape:
                    rows = measure_rows(expected, h, windows)
                    measured.setdefault(key, []).append(rows)
                return None if alter is None else alter(key, h)

            try:
                state = self.runner.run(call, seed=seed, visit=visit).random_state
            except SACMError:
                raise
            except Exception as error:
                raise ArgumentError(
                    f"{type(call.model).__name__} cannot be probed: it takes this batch as it is, "
                    f"but with disturbed windows it raised {type(error).__name__}: {error} Attach "
                    "to the part of it that takes any values, with input_arg=… if need be."
                ) from error
            if not torch.equal(state, base.random_state):
                return {}  # other random numbers, perhaps of another thread: no evidence
        return {
            key: {dim: torch.stack([rows[dim] for rows in each]) for dim in each[0]}
            for key, each in measured.items()
            if len(each) == len(calls)
        }

    def _resolve_from_outputs(
        self,
        batch: ProbeBatch,
        base: Pass,
        key: tuple[Site, int],
        outputs: dict[CallKey, SiteLayout],
        seed: int,
    ) -> None:
        """Resolve a call that no window moves: whose result changes with rows of it?"""
        site, shape = key[0], base.calls[key].shape
        if site.known_layouts(shape, batch.count):
            return
        windows = torch.arange(min(batch.count, _MOST_DISTURBED))
        passes = _number(windows, batch.count)
        for layout in list_candidates(shape, batch.count):
            owners = layout.owners(batch.count)
            rows_of = [(owners == window).nonzero()[:, 0] for window in windows]
            calls = [(batch.call, _add_noise(key, layout.dim, rows)) for rows in rows_of]
            measured = self._measure(calls, base, batch.count, seed, outputs)
            explained = [
                find_layout(rows, [outputs[output]], passes) is not None
                for output, rows in measured.items()
                if bool(rows[ANY].any())
            ]
            if explained and all(explained):
                site.learn(shape, layout)
                return
        if not site.layouts:
            site.leave_ordinary("depends on no window: its rows cannot be told apart by window")


def _number(windows: Tensor, count: int) -> Tensor:
    """Return the pass in which each of `count` windows is disturbed; -1 for none."""
    passes = torch.full((count,), -1)
    passes[windows] = torch.arange(len(windows))
    return passes


def _add_noise(key: CallKey, dim: int, rows: Tensor) -> Visit:
    """Return a visitor that adds noise to some rows of one call's activation."""

    def alter(called: CallKey, h: Tensor) -> Tensor | None:
        if called != key:
            return None
        noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7)).to(h)
        where = rows.to(h.device)
        return h.index_add(dim, where, noise.index_select(dim, where))

    return alter


def _describe_mixing(site: Site, shape: Sequence[int], windows: int) -> str:
    """Say why no layout explains the movements of an activation."""
    if not any(list_candidates(shape, windows)):
        return (
            f"has no dimension that holds the {windows} probed windows, as when forward pads the "
            "batch or takes it in parts"
        )
    if layouts := site.known_layouts(shape, windows):
        return (
            f"does not follow its layout ({' or '.join(map(str, layouts))}) in this batch of "
            f"{windows} windows: rows depend on other windows, as when forward sorts, shuffles, "
            "mixes or routes them"
        )
    return f"mixes the rows of the {windows} probed windows"
